// SPDX-License-Identifier: Apache-2.0

package source

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/gojail/gojail/internal/oneline"
)

// tagAnnotation names an image of a layout, annotations.md of the OCI image specification.
const tagAnnotation = "org.opencontainers.image.ref.name"

// indexDepth is the limit of nested indexes on the way to an image.
const indexDepth = 4

// openArchive returns a function that opens an image in the files that open returns.
func (s Source) openArchive(open func(path string) (blobs, error),
	read func(b blobs, tag, platform string) (*Image, error),
) func(context.Context, Options) (*Image, error) {
	return func(_ context.Context, options Options) (*Image, error) {
		b, err := open(s.rest)
		if err != nil {
			return nil, err
		}
		image, err := read(b, s.tag, options.Platform)
		if err != nil {
			b.Close()
			return nil, fmt.Errorf("%s: %w", s.rest, err)
		}
		image.close = b.Close
		return image, nil
	}
}

// readLayout finds an image of a layout by its tag and its platform.
func readLayout(b blobs, tag, platform string) (*Image, error) {
	text, err := readDocument(b, "index.json")
	if err != nil {
		if hasDocument(b, "manifest.json") {
			return nil, errors.New("it is not an OCI layout, but an archive of docker save; write docker-archive:FILE")
		}
		return nil, fmt.Errorf("it is not an OCI layout: %w", err)
	}
	index, err := v1.ParseIndexManifest(bytes.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("index.json is damaged: %w", err)
	}
	candidates := index.Manifests
	if tag != "" {
		candidates = slices.DeleteFunc(slices.Clone(candidates),
			func(d v1.Descriptor) bool { return d.Annotations[tagAnnotation] != tag })
	}
	if len(candidates) == 0 {
		return nil, fmt.Errorf("no image has the tag %q; tags: %s", tag, strings.Join(listTags(index.Manifests), ", "))
	}
	wanted, err := parsePlatform(platform)
	if err != nil {
		return nil, err
	}
	if err := checkTag(candidates, tag); err != nil {
		return nil, err
	}
	return findImage(b, candidates, wanted)
}

// checkTag fails if several images have a tag. One image that is listed twice counts once.
func checkTag(candidates []v1.Descriptor, tag string) error {
	if tag == "" {
		return nil
	}
	count := 0
	for i, d := range candidates {
		if d.Platform == nil && !slices.ContainsFunc(candidates[:i],
			func(e v1.Descriptor) bool { return e.Digest == d.Digest }) {
			count++
		}
	}
	if count > 1 {
		return fmt.Errorf("%d images have the tag %q; remove one of them, or copy the image to a new layout", count,
			tag)
	}
	return nil
}

// findImage chooses a manifest of a list, and follows indexes to that of an image.
func findImage(b blobs, list []v1.Descriptor, wanted v1.Platform) (*Image, error) {
	for range indexDepth + 1 {
		chosen, err := chooseManifest(list, wanted)
		if err != nil {
			return nil, err
		}
		text, err := readBlob(b, chosen.Digest)
		if err != nil {
			return nil, err
		}
		isIndex, err := checkManifest(text)
		if err != nil {
			return nil, fmt.Errorf("manifest %s %w", chosen.Digest, err)
		}
		if !isIndex {
			return readImage(b, chosen.Digest, text, wanted)
		}
		index, err := v1.ParseIndexManifest(bytes.NewReader(text))
		if err != nil {
			return nil, fmt.Errorf("index %s is damaged: %w", chosen.Digest, err)
		}
		list = index.Manifests
	}
	return nil, errors.New("too many nested indexes")
}

func listTags(manifests []v1.Descriptor) []string {
	tags := []string{}
	for _, d := range manifests {
		if tag := d.Annotations[tagAnnotation]; tag != "" {
			tags = append(tags, oneline.Printable(tag))
		}
	}
	return tags
}

func parsePlatform(text string) (v1.Platform, error) {
	if text == "" {
		return v1.Platform{OS: "linux", Architecture: runtime.GOARCH}, nil
	}
	p, err := v1.ParsePlatform(text)
	if err != nil || p.OS == "" || p.Architecture == "" {
		return v1.Platform{}, fmt.Errorf("platform %q: write OS/ARCHITECTURE, such as linux/arm64", text)
	}
	return *p, nil
}

// chooseManifest returns the only image of a list, or the first one for the platform, as registries do.
func chooseManifest(list []v1.Descriptor, wanted v1.Platform) (v1.Descriptor, error) {
	if len(list) > 0 && !slices.ContainsFunc(list, func(d v1.Descriptor) bool { return d.Digest != list[0].Digest }) {
		return list[0], nil
	}
	var found []v1.Descriptor
	var others []string
	for _, d := range list {
		switch {
		case d.Platform == nil:
			others = append(others, "one without a platform")
		case d.Platform.Satisfies(wanted):
			found = append(found, d)
		default:
			others = append(others, oneline.Printable(d.Platform.String()))
		}
	}
	if len(found) == 1 {
		return found[0], nil
	}
	tags := strings.Join(listTags(list), ", ")
	switch {
	case len(found) > 1 && tags != "":
		return v1.Descriptor{}, fmt.Errorf("there are %d images for %s; choose one by its tag: %s", len(found), wanted,
			tags)
	case len(found) > 1:
		return found[0], nil
	case tags != "":
		return v1.Descriptor{}, fmt.Errorf("there are %d images; choose one by its tag: %s", len(list), tags)
	}
	return v1.Descriptor{}, fmt.Errorf("there is no image for %s; there are: %s; give --platform", wanted,
		strings.Join(others, ", "))
}

// blobName returns the name of a blob in a layout.
func blobName(digest v1.Hash) (string, error) {
	if _, err := v1.NewHash(digest.String()); err != nil {
		return "", fmt.Errorf("invalid digest %q", oneline.Printable(digest.String()))
	}
	return "blobs/" + digest.Algorithm + "/" + digest.Hex, nil
}

// readBlob reads a document and verifies its digest.
func readBlob(b blobs, digest v1.Hash) ([]byte, error) {
	name, err := blobName(digest)
	if err != nil {
		return nil, err
	}
	text, err := readDocument(b, name)
	if err != nil {
		return nil, err
	}
	sum := newSum(bytes.NewReader(text), digest.String())
	if _, err := io.Copy(io.Discard, sum); err != nil || sum.digest() != digest.String() {
		return nil, fmt.Errorf("%s has the digest %s; it is damaged", name, sum.digest())
	}
	return text, nil
}
