// SPDX-License-Identifier: Apache-2.0

package source

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/gojail/gojail/internal/oneline"
)

// checkManifest reports whether a document is an index. The content decides, because some programs write no type or a
// wrong one. A document that is both is refused: it could be one for the program that signed it, and the other here.
func checkManifest(text []byte) (isIndex bool, err error) {
	var parts struct{ Manifests, Config, Layers, FSLayers json.RawMessage }
	if err := json.Unmarshal(text, &parts); err != nil {
		return false, fmt.Errorf("is damaged: %w", err)
	}
	isManifest := parts.Config != nil || parts.Layers != nil
	switch isIndex = parts.Manifests != nil; {
	case isIndex && isManifest:
		return false, errors.New("is both a manifest and an index, which nobody may have signed")
	case isIndex, isManifest:
		return isIndex, nil
	case parts.FSLayers != nil:
		return false,
			errors.New("is in docker's format of before 2016 (schema 1); convert it: skopeo copy --format oci")
	}
	return false, errors.New("is neither a manifest nor an index")
}

// readImage reads a manifest with its configuration.
func readImage(b blobs, digest v1.Hash, text []byte, wanted v1.Platform) (*Image, error) {
	manifest, err := v1.ParseManifest(bytes.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("manifest %s is damaged: %w", digest, err)
	}
	if err := checkLayers(manifest); err != nil { // before its configuration, which may be of any kind
		return nil, err
	}
	configText, err := readBlob(b, manifest.Config.Digest)
	if err != nil {
		return nil, err
	}
	return newManifestImage(digest, manifest, configText, wanted, func(d v1.Descriptor) (*Layer, error) {
		name, err := blobName(d.Digest)
		return &Layer{Open: func(context.Context) (io.ReadCloser, error) { return b.openBlob(name) }}, err
	})
}

// newManifestImage returns the image of a manifest with its layers. locate returns a layer by its descriptor.
func newManifestImage(digest v1.Hash, manifest *v1.Manifest, config []byte, wanted v1.Platform,
	locate func(v1.Descriptor) (*Layer, error),
) (*Image, error) {
	image, diffIDs, err := newImage(digest, config, wanted, "the manifest", len(manifest.Layers))
	if err != nil {
		return nil, err
	}
	for n, d := range manifest.Layers {
		if d.Size < 0 { // -1 is "unknown" to the library, which would then read without limit
			return nil, fmt.Errorf("layer %d: the manifest says that it has %d bytes", n+1, d.Size)
		}
		layer, err := locate(d)
		if err != nil {
			return nil, fmt.Errorf("layer %d: %w", n+1, err)
		}
		layer.Digest, layer.diffID, layer.Size = d.Digest.String(), diffIDs[n].String(), d.Size
		image.Layers = append(image.Layers, layer)
	}
	return image, nil
}

// newImage returns an image without its layers, and the DiffIDs of the layers from its configuration. Their number must
// be that of the layers in the document that lists them.
func newImage(digest v1.Hash, text []byte, wanted v1.Platform, document string, layers int) (*Image, []v1.Hash, error) {
	image := &Image{Digest: digest.String(), Layered: true}
	var config v1.ConfigFile
	if err := json.Unmarshal(text, &config); err != nil {
		return nil, nil, fmt.Errorf("the configuration is damaged: %w", err)
	}
	if config.OS != "" && config.Architecture != "" {
		is := v1.Platform{OS: config.OS, Architecture: config.Architecture, Variant: config.Variant}
		image.Platform = oneline.Printable(is.String())
		if config.OS != wanted.OS || config.Architecture != wanted.Architecture {
			return nil, nil, fmt.Errorf("the image is for %s and not for %s; give --platform %[1]s if that is right",
				image.Platform, wanted)
		}
	}
	if n := len(config.RootFS.DiffIDs); n != layers {
		return nil, nil, fmt.Errorf("%s has %d layers and the configuration %d", document, layers, n)
	}
	return image, config.RootFS.DiffIDs, nil
}

// checkLayers refuses a manifest with a layer that cannot be unpacked.
func checkLayers(manifest *v1.Manifest) error {
	for n, d := range manifest.Layers {
		if err := checkLayer(d.MediaType); err != nil {
			return fmt.Errorf("layer %d: %w", n+1, err)
		}
	}
	return nil
}

// checkLayer refuses a layer that cannot be unpacked. It ignores the compression in the type: the first bytes of the
// layer decide.
func checkLayer(kind types.MediaType) error {
	switch {
	case !kind.IsDistributable():
		return fmt.Errorf("type %s: its content is not part of the image", kind)
	case !kind.IsLayer():
		return fmt.Errorf("type %q is not a layer of files; give the image of a container",
			oneline.Printable(string(kind)))
	}
	return nil
}
