// SPDX-License-Identifier: Apache-2.0

package source

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/gojail/gojail/internal/oneline"
)

// dockerImage is an entry of manifest.json of docker save.
type dockerImage struct {
	Config   string
	RepoTags []string
	Layers   []string
}

func readDockerArchive(b blobs, tag, platform string) (*Image, error) {
	wanted, err := parsePlatform(platform)
	if err != nil {
		return nil, err
	}
	text, err := readDocument(b, "manifest.json")
	if err != nil && hasDocument(b, "index.json") {
		return nil, errors.New("it is not an archive of docker save, but an OCI layout; write oci-archive:FILE")
	}
	if err != nil {
		return nil, fmt.Errorf("it is not an archive of docker save: %w", err)
	}
	var all []dockerImage
	if err := json.Unmarshal(text, &all); err != nil {
		return nil, fmt.Errorf("manifest.json is damaged: %w", err)
	}
	chosen, err := chooseDockerImage(all, tag)
	if err != nil {
		return nil, err
	}
	configText, err := readDocument(b, chosen.Config)
	if err != nil {
		return nil, err
	}
	// The archive has no manifest of its own. The configuration's digest is docker's "image ID", and covers the layers.
	sum, _, err := v1.SHA256(bytes.NewReader(configText))
	if err != nil {
		return nil, err
	}
	image, diffIDs, err := newImage(sum, configText, wanted, "manifest.json", len(chosen.Layers))
	if err != nil {
		return nil, err
	}
	for i, name := range chosen.Layers {
		image.Layers = append(image.Layers, &Layer{diffID: diffIDs[i].String(),
			Open: func(context.Context) (io.ReadCloser, error) { return b.openBlob(name) }})
	}
	return image, nil
}

func chooseDockerImage(all []dockerImage, tag string) (dockerImage, error) {
	var tags []string
	for _, i := range all {
		if tag != "" && slices.ContainsFunc(i.RepoTags, func(have string) bool {
			return have == tag ||
				strings.HasSuffix(have, "/"+tag)
		}) {
			return i, nil
		}
		tags = append(tags, i.RepoTags...)
	}
	if tag == "" && len(all) == 1 {
		return all[0], nil
	}
	return dockerImage{}, fmt.Errorf("there are %d images, and %q names none; write FILE:NAME:TAG with one of: %s",
		len(all), tag, oneline.Printable(strings.Join(tags, ", ")))
}
