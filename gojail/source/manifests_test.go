// SPDX-License-Identifier: Apache-2.0

package source

import (
	"crypto/sha512"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/gojail/source/sourcetest"
)

// TestOddManifests has layouts as other programs write them, and what is no image of a container.
func TestOddManifests(t *testing.T) {
	b := fakeBlobs{}
	text := string(sourcetest.Tar(t, "a=1"))
	encode := func(value any) string {
		out, err := json.Marshal(value)
		require.NoError(t, err)
		return string(out)
	}
	type object = map[string]any
	blob := func(kind types.MediaType, text string, extra ...any) object {
		d := b.addBlob(text, kind)
		o := object{"digest": d.Digest.String(), "size": d.Size}
		if kind != "" {
			o["mediaType"] = string(kind)
		}
		for i := 0; i < len(extra); i += 2 {
			o[extra[i].(string)] = extra[i+1]
		}
		return o
	}
	const tagKey = tagAnnotation
	sha512Of := func(text string) object {
		digest := fmt.Sprintf("%x", sha512.Sum512([]byte(text)))
		b["blobs/sha512/"+digest] = []byte(text)
		return object{"digest": "sha512:" + digest, "size": len(text)}
	}
	b["blobs/sha512/"+strings.Repeat("0", 128)] = []byte("x")
	layer := blob(types.OCILayer, text)
	config := func(change func(object)) object {
		c := object{"os": "linux", "architecture": "amd64", "rootfs": object{"type": "layers", "diff_ids": []any{layer["digest"]}}}
		if change != nil {
			change(c)
		}
		return blob(types.OCIConfigJSON, encode(c))
	}
	usual := config(nil)
	manifest := func(kind types.MediaType, config object, layers ...object) object {
		return blob(kind, encode(object{"schemaVersion": 2, "config": config, "layers": layers}))
	}
	image := manifest(types.OCIManifestSchema1, usual, layer)
	index := func(kind types.MediaType, list ...object) object {
		return blob(kind, encode(object{"schemaVersion": 2, "manifests": list}))
	}
	with := func(o object, key string, value any) object {
		out := object{key: value}
		for k, v := range o {
			if k != key {
				out[k] = v
			}
		}
		return out
	}
	tagged := func(o object) object { return with(o, "annotations", object{tagKey: "x"}) }
	deep := image
	for range 6 {
		deep = index(types.OCIImageIndex, deep)
	}
	attestation := with(manifest(types.OCIManifestSchema1, usual, layer), "platform", object{"os": "unknown", "architecture": "unknown"})
	for name, row := range map[string]struct {
		list    []object
		tag     string
		refused string
	}{
		"usual":                         {list: []object{image}},
		"types of docker":               {list: []object{manifest(types.DockerManifestSchema2, with(usual, "mediaType", string(types.DockerConfigJSON)), with(layer, "mediaType", string(types.DockerLayer)))}},
		"no type of the manifest":       {list: []object{manifest("", usual, layer)}},
		"another type of the manifest":  {list: []object{manifest("application/json", usual, layer)}},
		"an index within":               {list: []object{index(types.OCIImageIndex, image)}},
		"a list of docker within":       {list: []object{index(types.DockerManifestList, image)}},
		"an index without a type":       {list: []object{index("", image)}},
		"an index of the wrong type":    {list: []object{index(types.OCIManifestSchema1, index("", image))}},
		"indexes without end":           {list: []object{deep}, refused: "too many nested indexes"},
		"an attestation of buildkit":    {list: []object{with(image, "platform", object{"os": "linux", "architecture": "amd64"}), attestation}},
		"the same tag twice":            {list: []object{tagged(image), tagged(image)}, tag: "x"},
		"the same tag of others":        {list: []object{tagged(image), tagged(index("", image))}, tag: "x", refused: `2 images have the tag "x"; remove one of them, or copy the image to a new layout`},
		"the same image twice":          {list: []object{image, image}},
		"a layer of zstd:chunked":       {list: []object{manifest(types.OCIManifestSchema1, usual, with(with(layer, "mediaType", string(types.OCILayerZStd)), "annotations", object{"io.github.containers.zstd-chunked.manifest-position": "1:2:3:1"}))}},
		"no platform":                   {list: []object{manifest(types.OCIManifestSchema1, config(func(c object) { delete(c, "os"); delete(c, "architecture") }), layer)}},
		"odd fields of a configuration": {list: []object{manifest(types.OCIManifestSchema1, config(func(c object) { c["history"] = nil; c["config"] = nil; c["os.features"] = []string{"x"}; c["x"] = 1 }), layer)}},
		"a configuration without a rootfs": {list: []object{manifest(types.OCIManifestSchema1, config(func(c object) { delete(c, "rootfs") }), layer)},
			refused: "the manifest has 1 layers and the configuration 0"},
		"an empty history":         {list: []object{manifest(types.OCIManifestSchema1, config(func(c object) { c["history"] = []object{{"empty_layer": true}, {}} }), layer)}},
		"schema 1 of docker":       {list: []object{blob(types.DockerManifestSchema1Signed, `{"schemaVersion":1,"fsLayers":[{"blobSum":"x"}]}`)}, refused: "is in docker's format of before 2016 (schema 1); convert it: skopeo copy --format oci"},
		"neither":                  {list: []object{blob("", `{"schemaVersion":2}`)}, refused: "is neither a manifest nor an index"},
		"no JSON":                  {list: []object{blob("", `<html>`)}, refused: "is damaged: "},
		"a chart of helm":          {list: []object{manifest(types.OCIManifestSchema1, blob("application/vnd.cncf.helm.config.v1+json", "{}"), with(layer, "mediaType", "application/vnd.cncf.helm.chart.content.v1.tar+gzip"))}, refused: `layer 1: type "application/vnd.cncf.helm.chart.content.v1.tar+gzip" is not a layer of files; give the image of a container`},
		"an image of Apptainer":    {list: []object{manifest(types.OCIManifestSchema1, blob("application/vnd.sylabs.sif.config.v1+json", "{}"), with(layer, "mediaType", "application/vnd.sylabs.sif.layer.v1.sif"))}, refused: `layer 1: type "application/vnd.sylabs.sif.layer.v1.sif" is not a layer of files`},
		"an artifact without type": {list: []object{manifest(types.OCIManifestSchema1, blob("application/vnd.oci.empty.v1+json", "{}"), with(layer, "mediaType", "application/octet-stream"))}, refused: `layer 1: type "application/octet-stream" is not a layer of files`},
		"a layer of Windows":       {list: []object{manifest(types.OCIManifestSchema1, usual, with(layer, "mediaType", string(types.DockerForeignLayer)))}, refused: "its content is not part of the image"},
		"an encrypted layer":       {list: []object{manifest(types.OCIManifestSchema1, usual, with(layer, "mediaType", "application/vnd.oci.image.layer.v1.tar+gzip+encrypted"))}, refused: "is not a layer of files"},
		"SHA-512 of a manifest":    {list: []object{sha512Of(encode(object{"config": usual, "layers": []object{layer}}))}},
		"SHA-512 of a layer":       {list: []object{manifest(types.OCIManifestSchema1, config(func(c object) { c["rootfs"] = object{"diff_ids": []any{sha512Of(text)["digest"]}} }), with(sha512Of(text), "mediaType", string(types.OCILayer)))}},
		"a wrong SHA-512":          {list: []object{{"digest": "sha512:" + strings.Repeat("0", 128), "size": 1}}, refused: "it is damaged"},
		"a digest of SHA-1":        {list: []object{{"digest": "sha1:" + strings.Repeat("0", 40), "size": 1}}, refused: "index.json is damaged: unsupported hash: "},
		"manifest and index":       {list: []object{blob("", encode(object{"manifests": []object{image}, "config": usual, "layers": []object{layer}}))}, refused: "is both a manifest and an index"},
		"no layers":                {list: []object{manifest(types.OCIManifestSchema1, config(func(c object) { delete(c, "rootfs") }))}},
	} {
		b["index.json"] = []byte(encode(object{"schemaVersion": 2, "manifests": row.list}))
		opened, err := readLayout(b, row.tag, "linux/amd64")
		if row.refused != "" {
			if assert.ErrorContains(t, err, row.refused, name) {
				assert.NotContains(t, err.Error(), "\n", name)
			}
			continue
		}
		if !assert.NoError(t, err, name) {
			continue
		}
		for _, l := range opened.Layers {
			assert.NoError(t, readLayer(l), name)
		}
	}
}

// TestArchivesOfTheOtherKind: each kind of archive names the kind that it is.
func TestArchivesOfTheOtherKind(t *testing.T) {
	docker := fakeBlobs{"manifest.json": []byte("[]")}
	_, err := readLayout(docker, "", "")
	require.ErrorContains(t, err, "it is not an OCI layout, but an archive of docker save; write docker-archive:FILE")
	_, err = readDockerArchive(fakeBlobs{"index.json": []byte("{}")}, "", "")
	require.ErrorContains(t, err, "it is not an archive of docker save, but an OCI layout; write oci-archive:FILE")
	_, err = readDockerArchive(fakeBlobs{"repositories": []byte("{}")}, "", "")
	require.ErrorContains(t, err, "it is not an archive of docker save")
	_, err = readLayout(fakeBlobs{}, "", "")
	require.ErrorContains(t, err, "it is not an OCI layout: cannot read index.json: ")
}
