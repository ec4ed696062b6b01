// SPDX-License-Identifier: Apache-2.0

package source

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/gojail/gojail/internal/oneline"
)

// tagAnnotation names an image of a layout, annotations.md of the OCI image specification.
const tagAnnotation = "org.opencontainers.image.ref.name"

// indexDepth is the most indexes on the way to an image.
const indexDepth = 4

func (s Source) openLayout(_ context.Context, options Options) (*Image, error) {
	b, err := openDirBlobs(s.rest)
	if err != nil {
		return nil, err
	}
	return s.openImage(b, options)
}

func (s Source) openLayoutArchive(_ context.Context, options Options) (*Image, error) {
	b, err := openTarBlobs(s.rest)
	if err != nil {
		return nil, err
	}
	return s.openImage(b, options)
}

func (s Source) openImage(b blobs, options Options) (*Image, error) {
	image, err := readLayout(b, s.tag, options.Platform)
	if err != nil {
		b.Close()
		return nil, fmt.Errorf("%s: %w", s.rest, err)
	}
	image.close = b.Close
	return image, nil
}

// readLayout finds an image of a layout by its tag and its platform.
func readLayout(b blobs, tag, platform string) (*Image, error) {
	text, err := readDocument(b, "index.json")
	if err != nil {
		return nil, fmt.Errorf("it is not an OCI layout: %w", err)
	}
	index, err := v1.ParseIndexManifest(bytes.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("index.json is damaged: %w", err)
	}
	candidates := index.Manifests
	if tag != "" {
		candidates = slices.DeleteFunc(slices.Clone(candidates), func(d v1.Descriptor) bool { return d.Annotations[tagAnnotation] != tag })
	}
	if len(candidates) == 0 {
		return nil, fmt.Errorf("no image has the tag %q; tags: %s", tag, strings.Join(listTags(index.Manifests), ", "))
	}
	wanted, err := parsePlatform(platform)
	if err != nil {
		return nil, err
	}
	chosen, err := chooseManifest(candidates, wanted)
	for depth := 1; err == nil && chosen.MediaType.IsIndex(); depth++ {
		if depth > indexDepth {
			return nil, errors.New("too many nested indexes")
		}
		chosen, err = chooseFromIndex(b, chosen, wanted)
	}
	if err != nil {
		return nil, err
	}
	return readImage(b, chosen, wanted)
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

// chooseManifest returns the only image of a list, or the only one for the platform.
func chooseManifest(list []v1.Descriptor, wanted v1.Platform) (v1.Descriptor, error) {
	if len(list) == 1 {
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
		return v1.Descriptor{}, fmt.Errorf("there are %d images for %s; choose one by its tag: %s", len(found), wanted, tags)
	case len(found) > 1:
		return found[0], nil // as registries do: the first one
	case tags != "":
		return v1.Descriptor{}, fmt.Errorf("there are %d images; choose one by its tag: %s", len(list), tags)
	}
	return v1.Descriptor{}, fmt.Errorf("there is no image for %s; there are: %s; give --platform", wanted, strings.Join(others, ", "))
}

func chooseFromIndex(b blobs, from v1.Descriptor, wanted v1.Platform) (v1.Descriptor, error) {
	text, err := readBlob(b, from.Digest)
	if err != nil {
		return v1.Descriptor{}, err
	}
	index, err := v1.ParseIndexManifest(bytes.NewReader(text))
	if err != nil {
		return v1.Descriptor{}, fmt.Errorf("index %s is damaged: %w", from.Digest, err)
	}
	return chooseManifest(index.Manifests, wanted)
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
	if sum, _, err := v1.SHA256(bytes.NewReader(text)); err != nil || sum != digest {
		return nil, fmt.Errorf("%s has the digest %s; it is damaged", name, sum)
	}
	return text, nil
}

// readImage reads a manifest with its configuration.
func readImage(b blobs, from v1.Descriptor, wanted v1.Platform) (*Image, error) {
	text, err := readBlob(b, from.Digest)
	if err != nil {
		return nil, err
	}
	manifest, err := v1.ParseManifest(bytes.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("manifest %s is damaged: %w", from.Digest, err)
	}
	configText, err := readBlob(b, manifest.Config.Digest)
	if err != nil {
		return nil, err
	}
	image := &Image{Digest: from.Digest.String(), Layered: true}
	diffIDs, err := image.readConfig(configText, wanted)
	if err != nil {
		return nil, err
	}
	return image, image.addLayers(manifest, diffIDs, func(d v1.Descriptor) (*Layer, error) {
		name, err := blobName(d.Digest)
		return &Layer{Open: func(context.Context) (io.ReadCloser, error) { return b.openBlob(name) }}, err
	})
}

// addLayers adds the layers of a manifest, as locate returns them.
func (i *Image) addLayers(manifest *v1.Manifest, diffIDs []v1.Hash, locate func(v1.Descriptor) (*Layer, error)) error {
	if len(diffIDs) != len(manifest.Layers) {
		return fmt.Errorf("the manifest has %d layers and the configuration %d", len(manifest.Layers), len(diffIDs))
	}
	for n, d := range manifest.Layers {
		if err := checkLayer(d.MediaType); err != nil {
			return fmt.Errorf("layer %d: %w", n+1, err)
		}
		if d.Size < 0 { // -1 would be "unknown" to the library, which then reads what a registry sends without limit
			return fmt.Errorf("layer %d: the manifest says that it has %d bytes", n+1, d.Size)
		}
		layer, err := locate(d)
		if err != nil {
			return fmt.Errorf("layer %d: %w", n+1, err)
		}
		layer.Digest, layer.diffID, layer.Size = d.Digest.String(), diffIDs[n].String(), d.Size
		i.Layers = append(i.Layers, layer)
	}
	return nil
}

// readConfig sets the platform of an image, and returns the DiffIDs of its layers.
func (i *Image) readConfig(text []byte, wanted v1.Platform) ([]v1.Hash, error) {
	var config v1.ConfigFile
	if err := json.Unmarshal(text, &config); err != nil {
		return nil, fmt.Errorf("the configuration is damaged: %w", err)
	}
	if config.OS == "" || config.Architecture == "" {
		return config.RootFS.DiffIDs, nil
	}
	is := v1.Platform{OS: config.OS, Architecture: config.Architecture, Variant: config.Variant}
	i.Platform = oneline.Printable(is.String())
	if config.OS != wanted.OS || config.Architecture != wanted.Architecture {
		return nil, fmt.Errorf("the image is for %s and not for %s; give --platform %[1]s if that is right", i.Platform, wanted)
	}
	return config.RootFS.DiffIDs, nil
}

// checkLayer refuses layers that cannot be unpacked. It ignores the compression in a type: the first bytes of the layer decide.
func checkLayer(kind types.MediaType) error {
	switch {
	case !kind.IsDistributable():
		return fmt.Errorf("type %s: its content is not part of the image", kind)
	case !kind.IsLayer():
		return fmt.Errorf("type %q is not a layer of files; give the image of a container", oneline.Printable(string(kind)))
	}
	return nil
}
