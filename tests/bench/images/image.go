// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bufio"
	"compress/gzip"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// layers is the number of layers of the image.
const layers = 5

// tag is the tag of the image in the layout and in the registry.
const tag = "bench"

// bench is the image in all its forms.
type bench struct {
	dir, gojail, umoci string
	image              v1.Image
	compressed         int64 // bytes
	reference          string
}

func (b *bench) layerPath(n int) string {
	return filepath.Join(b.dir, fmt.Sprintf("layer-%d.tar.gz", n))
}

func (b *bench) layoutPath() string { return filepath.Join(b.dir, "layout") }

// makeImage writes the layers, and an OCI layout of them.
func (b *bench) makeImage(files int, bytes int64) error {
	random := rand.NewChaCha8([32]byte{1})
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	for n := range layers {
		if err := writeLayer(b.layerPath(n), random, n, files/layers, bytes/layers); err != nil {
			return fmt.Errorf("cannot write a layer: %w", err)
		}
		info, err := os.Stat(b.layerPath(n))
		if err != nil {
			return err
		}
		b.compressed += info.Size()
		layer, err := tarball.LayerFromFile(b.layerPath(n), tarball.WithMediaType(types.OCILayer))
		if err != nil {
			return err
		}
		if image, err = mutate.AppendLayers(image, layer); err != nil {
			return err
		}
	}
	config, err := image.ConfigFile()
	if err != nil {
		return err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture, config.Config.Cmd = "linux", runtime.GOARCH, []string{"/bin/true"}
	if b.image, err = mutate.ConfigFile(image, config); err != nil {
		return err
	}
	at, err := layout.Write(b.layoutPath(), empty.Index)
	if err != nil {
		return err
	}
	return at.AppendImage(b.image, layout.WithAnnotations(map[string]string{"org.opencontainers.image.ref.name": tag}))
}

// writeLayer writes files of exponentially distributed sizes, a hundred in each directory.
func writeLayer(path string, source *rand.ChaCha8, layer, files int, bytes int64) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	defer file.Close()
	buffered := bufio.NewWriterSize(file, 1<<20)
	compressed, err := gzip.NewWriterLevel(buffered, gzip.BestSpeed)
	if err != nil {
		return err
	}
	archive := tar.NewWriter(compressed)
	random := rand.New(source)
	left, made := bytes, time.Unix(1_700_000_000, 0)
	for n := range files {
		size := min(left, int64(random.ExpFloat64()*float64(bytes)/float64(files)))
		if n == files-1 {
			size = left
		}
		left -= size
		header := &tar.Header{Name: fmt.Sprintf("usr/share/part-%d/%d/file-%d", layer, n/100, n), Typeflag: tar.TypeReg, Mode: 0o644, Size: size, ModTime: made}
		if err := archive.WriteHeader(header); err != nil {
			return err
		}
		if _, err := io.CopyN(archive, &halfRandom{source: source}, size); err != nil {
			return err
		}
	}
	for _, closer := range []func() error{archive.Close, compressed.Close, buffered.Flush, file.Close} {
		if err := closer(); err != nil {
			return err
		}
	}
	return nil
}

// halfRandom is an endless stream, of which every second block of 512 bytes repeats one byte.
type halfRandom struct {
	source *rand.ChaCha8
	at     int64
}

func (h *halfRandom) Read(p []byte) (int, error) {
	p = p[:min(int64(len(p)), 512-h.at%512)]
	if h.at/512%2 == 0 {
		h.source.Read(p)
	} else {
		for i := range p {
			p[i] = 'x'
		}
	}
	h.at += int64(len(p))
	return len(p), nil
}

// startRegistry serves the image on loopback, without TLS.
func (b *bench) startRegistry() (end func(), err error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	stored := filepath.Join(b.dir, "registry")
	if err := os.Mkdir(stored, 0o700); err != nil {
		return nil, err
	}
	blobs := registry.NewDiskBlobHandler(stored)
	server := &http.Server{Handler: registry.New(registry.WithBlobHandler(blobs), registry.Logger(log.New(io.Discard, "", 0)))}
	go server.Serve(listener)
	b.reference = listener.Addr().String() + "/bench:" + tag
	reference, err := name.ParseReference(b.reference)
	if err == nil {
		err = remote.Write(reference, b.image)
	}
	if err != nil {
		server.Close()
		return nil, fmt.Errorf("cannot write the image to the registry: %w", err)
	}
	return func() { server.Close() }, nil
}
