// SPDX-License-Identifier: Apache-2.0

// Package source opens the sources of jails: OCI layouts, archives of podman and docker, registries, directories, tar
// files and trees of mmdebstrap. Each becomes a list of layers, which are tar streams.
//
// No document of a source is trusted. The manifest must have the digest that was asked for, the configuration and the
// layers must have those of the manifest, and the content of a layer the DiffID of the configuration. A stream that
// fails one of these checks ends with an error after its last byte, so a reader keeps none of it before that. Layers
// with foreign URLs and encrypted layers are refused.
//
// go-containerregistry is used to talk to registries, and for the types of the OCI image specification. Its Extract is
// not used: it gets hard links across layers wrong.
package source

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"strings"
)

// Kinds of sources: the beginning of SOURCE.
const (
	kindOCI           = "oci:"
	kindOCIArchive    = "oci-archive:"
	kindDockerArchive = "docker-archive:"
	kindRegistry      = "docker://"
	kindDir           = "dir:"
	kindTar           = "tar:"
	kindDebootstrap   = "debootstrap:"
)

// forms are the forms of a SOURCE, for help texts.
var forms = []string{"oci:DIR[:TAG]", "oci-archive:FILE[:TAG]", "docker-archive:FILE[:TAG]",
	"docker://REGISTRY/NAME[:TAG|@DIGEST]",
	"dir:DIR", "tar:FILE", "debootstrap:SUITE"}

// Source is a parsed SOURCE.
type Source struct {
	kind string
	rest string // a path, a reference or a suite
	tag  string
}

// ParseSource parses a SOURCE. Relative paths are resolved against the working directory.
func ParseSource(text string) (Source, error) {
	for _, kind := range []string{kindOCI, kindOCIArchive, kindDockerArchive, kindRegistry, kindDir, kindTar,
		kindDebootstrap} {
		rest, ok := strings.CutPrefix(text, kind)
		if !ok {
			continue
		}
		s := Source{kind: kind, rest: rest}
		switch kind {
		case kindRegistry, kindDebootstrap:
		case kindOCI, kindOCIArchive, kindDockerArchive:
			s.rest, s.tag, _ = strings.Cut(rest, ":")
		}
		if s.rest == "" || s.rest[0] == '-' {
			break
		}
		if kind == kindRegistry || kind == kindDebootstrap {
			return s, nil
		}
		full, err := filepath.Abs(s.rest)
		s.rest = full
		return s, err
	}
	return Source{}, fmt.Errorf("%q is not a source of a jail; write one of: %s", text, strings.Join(forms, ", "))
}

// Options select the image, and the ways to reach a registry.
type Options struct {
	Platform    string   // as "linux/arm64"; "": this machine's
	Insecure    bool     // registries without TLS
	Authority   string   // file with certificates of a registry's authority; "": the system's
	Debootstrap []string // further arguments of mmdebstrap
}

// Image is an open source.
type Image struct {
	Digest   string // digest of the manifest; "": the source has none
	Platform string // "": unknown
	Layers   []*Layer
	Layered  bool // whether a layer may remove files of the layers below it
	close    func() error
}

// Close closes the files and connections of the source.
func (i *Image) Close() error {
	if i.close == nil {
		return nil
	}
	return i.close()
}

// Layer is one tar stream of an image.
type Layer struct {
	Digest string // digest of the stored form; "": unknown until it is read
	diffID string // digest of the decompressed stream; "": unknown
	Size   int64  // size of the stored form; 0: unknown
	Remote bool   // whether it comes over the network
	Open   func(context.Context) (io.ReadCloser, error)
}

// Open opens a source.
func (s Source) Open(ctx context.Context, options Options) (*Image, error) {
	open := map[string]func(context.Context, Options) (*Image, error){
		kindOCI: s.openArchive(openDirBlobs, readLayout), kindOCIArchive: s.openArchive(openTarBlobs, readLayout),
		kindDockerArchive: s.openArchive(openTarBlobs, readDockerArchive),
		kindRegistry:      s.openRegistry,
		kindDir:           s.openDir, kindTar: s.openTar, kindDebootstrap: s.openDebootstrap,
	}[s.kind]
	return open(ctx, options)
}
