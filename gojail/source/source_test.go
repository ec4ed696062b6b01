// SPDX-License-Identifier: Apache-2.0

package source

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/gojail/source/sourcetest"
	"github.com/gojail/gojail/internal/nstest"
)

const enough = 1 << 30

// readNames opens a source and returns the names in each of its layers.
func readNames(t *testing.T, text string, options Options) (*Image, []string, error) {
	t.Helper()
	source, err := ParseSource(text)
	require.NoError(t, err)
	image, err := source.Open(context.Background(), options)
	if err != nil {
		assert.NotContains(t, err.Error(), "\n", "one line")
		return nil, nil, err
	}
	defer image.Close()
	var layers []string
	for _, l := range image.Layers {
		stored, err := l.Open(context.Background())
		require.NoError(t, err)
		defer stored.Close()
		var names []string
		_, err = l.Read(context.Background(), stored, enough, confine, func(r io.Reader) error {
			archive := tar.NewReader(r)
			for {
				h, err := archive.Next()
				if err == io.EOF {
					_, err = io.Copy(io.Discard, r)
					return err
				}
				if err != nil {
					return err
				}
				names = append(names, h.Name)
			}
		})
		if err != nil {
			return nil, nil, err
		}
		layers = append(layers, strings.Join(names, " "))
	}
	return image, layers, nil
}

func TestParseSource(t *testing.T) {
	for _, bad := range []string{"", "debian", "oci:", "oci::tag", "docker:debian", "/dir", "tar:-", "debootstrap:--help", "docker://-x"} {
		_, err := ParseSource(bad)
		require.ErrorContains(t, err, "is not a source of a jail; write one of: oci:DIR[:TAG], ", bad)
	}
	s, err := ParseSource("oci:/images/x:v1:2")
	require.NoError(t, err)
	assert.Equal(t, Source{"oci:", "/images/x", "v1:2"}, s)
	s, err = ParseSource("tar:a:b.tar")
	require.NoError(t, err)
	wd, _ := os.Getwd()
	assert.Equal(t, Source{"tar:", wd + "/a:b.tar", ""}, s)
}

func TestLayoutByTagAndPlatform(t *testing.T) {
	one := sourcetest.Image(t, []string{"a=1", "b/"}, []string{"c=2"})
	two := sourcetest.Image(t, []string{"d=1"})
	dir := sourcetest.Layout(t, map[string]v1.Image{"one": one, "two": two})
	image, layers, err := readNames(t, "oci:"+dir+":one", Options{})
	require.NoError(t, err)
	assert.Equal(t, []string{"a b/", "c"}, layers)
	digest, err := one.Digest()
	require.NoError(t, err)
	assert.Equal(t, digest.String(), image.Digest)
	assert.Equal(t, "linux/"+runtime.GOARCH, image.Platform)
	assert.True(t, image.Layered)

	_, _, err = readNames(t, "oci:"+dir+":three", Options{})
	require.ErrorContains(t, err, `no image has the tag "three"; tags: `)
	_, _, err = readNames(t, "oci:"+dir, Options{})
	require.ErrorContains(t, err, "there are 2 images; choose one by its tag: ")

	other := sourcetest.For(t, two, "s390x")
	dir = sourcetest.Layout(t, map[string]v1.Image{"": other})
	_, _, err = readNames(t, "oci:"+dir, Options{})
	require.ErrorContains(t, err, "the image is for linux/s390x and not for linux/"+runtime.GOARCH+"; give --platform linux/s390x if that is right")
	_, layers, err = readNames(t, "oci:"+dir, Options{Platform: "linux/s390x"})
	require.NoError(t, err)
	assert.Equal(t, []string{"d"}, layers)
	_, _, err = readNames(t, "oci:"+dir, Options{Platform: "s390x"})
	require.ErrorContains(t, err, `platform "s390x": write OS/ARCHITECTURE`)

	// An index in the index, as multi-platform images have, with an attestation.
	index := mutate.AppendManifests(empty.Index,
		mutate.IndexAddendum{Add: other, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: "s390x"}}},
		mutate.IndexAddendum{Add: one, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: runtime.GOARCH}}},
		mutate.IndexAddendum{Add: sourcetest.Image(t), Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "unknown", Architecture: "unknown"}}})
	dir = filepath.Join(t.TempDir(), "multi")
	at, err := layout.Write(dir, empty.Index)
	require.NoError(t, err)
	require.NoError(t, at.AppendIndex(index))
	_, layers, err = readNames(t, "oci:"+dir, Options{})
	require.NoError(t, err)
	assert.Equal(t, []string{"a b/", "c"}, layers)
	_, _, err = readNames(t, "oci:"+dir, Options{Platform: "linux/riscv64"})
	require.ErrorContains(t, err, "there is no image for linux/riscv64; there are: linux/s390x, linux/"+runtime.GOARCH+", unknown/unknown; give --platform")
}

// TestLayoutBelievesNothing damages one document or blob of a layout after the other.
func TestLayoutBelievesNothing(t *testing.T) {
	image := sourcetest.Image(t, []string{"a=1"})
	manifest, err := image.Manifest()
	require.NoError(t, err)
	digest, err := image.Digest()
	require.NoError(t, err)
	blob := func(h v1.Hash) string { return "blobs/sha256/" + h.Hex }
	edit := func(name, old, new string) func(*testing.T, string) {
		return func(t *testing.T, dir string) {
			text, err := os.ReadFile(filepath.Join(dir, name))
			require.NoError(t, err)
			require.Contains(t, string(text), old)
			require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(strings.ReplaceAll(string(text), old, new)), 0o644))
		}
	}
	for name, test := range map[string]struct {
		change func(*testing.T, string)
		want   string
	}{
		"manifest":        {edit(blob(digest), "schemaVersion", "SchemaVersion"), "blobs/sha256/" + digest.Hex + " has the digest sha256:"},
		"configuration":   {edit(blob(manifest.Config.Digest), "linux", "LINUX"), "blobs/sha256/" + manifest.Config.Digest.Hex + " has the digest sha256:"},
		"layer":           {edit(blob(manifest.Layers[0].Digest), "\x1f\x8b", "\x1f\x8c"), "has the digest sha256:"},
		"no layer":        {removeFile(blob(manifest.Layers[0].Digest)), "no such file or directory"},
		"no index":        {removeFile("index.json"), "it is not an OCI layout: cannot read index.json: no such file or directory"},
		"index":           {edit("index.json", "{", "["), "index.json is damaged"},
		"digest of paths": {edit("index.json", digest.Hex, "../../../../../../../../../etc/passwd"), "index.json is damaged"},
		"link out of it": {func(t *testing.T, dir string) {
			removeFile(blob(digest))(t, dir)
			require.NoError(t, os.Symlink("/etc/passwd", filepath.Join(dir, blob(digest))))
		}, "path escapes from parent"},
		"pipe": {func(t *testing.T, dir string) {
			removeFile(blob(digest))(t, dir)
			require.NoError(t, exec.Command("mkfifo", filepath.Join(dir, blob(digest))).Run())
		}, "is not a regular file"},
		"large": {func(t *testing.T, dir string) {
			require.NoError(t, os.Truncate(filepath.Join(dir, "index.json"), documentMax+1))
		}, "index.json is larger than 4194304 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := sourcetest.Layout(t, map[string]v1.Image{"": image})
			test.change(t, dir)
			source, err := ParseSource("oci:" + dir)
			require.NoError(t, err)
			opened, err := source.Open(context.Background(), Options{})
			if err == nil {
				defer opened.Close()
				err = readLayer(opened.Layers[0])
			}
			require.ErrorContains(t, err, test.want)
		})
	}
}

func removeFile(name string) func(*testing.T, string) {
	return func(t *testing.T, dir string) { require.NoError(t, os.Remove(filepath.Join(dir, name))) }
}

// readLayer reads a layer to its end.
func readLayer(l *Layer) error {
	stored, err := l.Open(context.Background())
	if err != nil {
		return err
	}
	defer stored.Close()
	_, err = l.Read(context.Background(), stored, enough, confine, discardContent)
	return err
}

func discardContent(r io.Reader) error {
	_, err := io.Copy(io.Discard, r)
	return err
}

// fakeBlobs are files in memory.
type fakeBlobs map[string][]byte

func (f fakeBlobs) openBlob(name string) (io.ReadCloser, error) {
	text, ok := f[name]
	if !ok {
		return nil, fs.ErrNotExist
	}
	return io.NopCloser(bytes.NewReader(text)), nil
}

func (f fakeBlobs) Close() error { return nil }

// addBlob adds a blob and returns its descriptor.
func (f fakeBlobs) addBlob(text string, kind types.MediaType) v1.Descriptor {
	digest, size, _ := v1.SHA256(strings.NewReader(text))
	f["blobs/sha256/"+digest.Hex] = []byte(text)
	return v1.Descriptor{MediaType: kind, Digest: digest, Size: size}
}

func (f fakeBlobs) addJSON(value any, kind types.MediaType) v1.Descriptor {
	text, _ := json.Marshal(value)
	return f.addBlob(string(text), kind)
}

func TestImagesThatCannotBeUnpacked(t *testing.T) {
	layer := func(kind types.MediaType) (*v1.Manifest, []v1.Hash) {
		digest := v1.Hash{Algorithm: "sha256", Hex: strings.Repeat("0", 64)}
		return &v1.Manifest{Layers: []v1.Descriptor{{MediaType: kind, Digest: digest}}}, []v1.Hash{digest}
	}
	for kind, want := range map[types.MediaType]string{
		types.OCIRestrictedLayer:                            "its content is not part of the image",
		"application/vnd.oci.image.layer.v1.tar+encrypted":  "is not a layer of files; give the image of a container",
		"application/vnd.cncf.helm.chart.content.v1.tar+gz": "is not a layer of files; give the image of a container",
	} {
		b := fakeBlobs{}
		manifest, diffIDs := layer(kind)
		manifest.Config = b.addJSON(v1.ConfigFile{RootFS: v1.RootFS{DiffIDs: diffIDs}}, types.OCIConfigJSON)
		index := v1.IndexManifest{Manifests: []v1.Descriptor{b.addJSON(manifest, types.OCIManifestSchema1)}}
		b["index.json"], _ = json.Marshal(index)
		_, err := readLayout(b, "", "")
		require.ErrorContains(t, err, want)
	}
	b := fakeBlobs{}
	manifest, _ := layer(types.OCILayer)
	manifest.Config = b.addJSON(v1.ConfigFile{}, types.OCIConfigJSON)
	index := v1.IndexManifest{Manifests: []v1.Descriptor{b.addJSON(manifest, types.OCIManifestSchema1)}}
	b["index.json"], _ = json.Marshal(index)
	_, err := readLayout(b, "", "")
	require.EqualError(t, err, "the manifest has 1 layers and the configuration 0")

	deep := b.addJSON(v1.IndexManifest{}, types.OCIImageIndex)
	for range 5 {
		deep = b.addJSON(v1.IndexManifest{Manifests: []v1.Descriptor{deep}}, types.OCIImageIndex)
	}
	b["index.json"], _ = json.Marshal(v1.IndexManifest{Manifests: []v1.Descriptor{deep}})
	_, err = readLayout(b, "", "")
	require.EqualError(t, err, "too many nested indexes")
}

func TestArchives(t *testing.T) {
	one, two := sourcetest.Image(t, []string{"a=1"}, []string{"b=2"}), sourcetest.Image(t, []string{"c=1"})
	dir := t.TempDir()
	tag := func(text string) name.Tag {
		tag, err := name.NewTag(text)
		require.NoError(t, err)
		return tag
	}
	docker := filepath.Join(dir, "docker.tar")
	require.NoError(t, tarball.WriteToFile(docker, tag("registry.example.org/hpc/one:v1"), one))
	image, layers, err := readNames(t, "docker-archive:"+docker, Options{})
	require.NoError(t, err)
	assert.Equal(t, []string{"a", "b"}, layers)
	config, err := one.ConfigName()
	require.NoError(t, err)
	assert.Equal(t, config.String(), image.Digest)

	both := filepath.Join(dir, "both.tar")
	require.NoError(t, tarball.MultiWriteToFile(both, map[name.Tag]v1.Image{tag("hpc/one:v1"): one, tag("hpc/two:v1"): two}))
	_, layers, err = readNames(t, "docker-archive:"+both+":hpc/two:v1", Options{})
	require.NoError(t, err)
	assert.Equal(t, []string{"c"}, layers)
	_, _, err = readNames(t, "docker-archive:"+both, Options{})
	require.ErrorContains(t, err, `there are 2 images, and "" names none; write FILE:NAME:TAG with one of: `)

	archive := filepath.Join(dir, "oci.tar")
	out, err := exec.Command("tar", "-cf", archive, "-C", sourcetest.Layout(t, map[string]v1.Image{"x": one}), ".").CombinedOutput()
	require.NoError(t, err, string(out))
	_, layers, err = readNames(t, "oci-archive:"+archive+":x", Options{})
	require.NoError(t, err)
	assert.Equal(t, []string{"a", "b"}, layers)

	_, _, err = readNames(t, "docker-archive:"+archive, Options{})
	require.ErrorContains(t, err, "it is not an archive of docker save, but an OCI layout; write oci-archive:FILE")
	_, _, err = readNames(t, "oci-archive:"+docker, Options{})
	require.ErrorContains(t, err, "it is not an OCI layout, but an archive of docker save; write docker-archive:FILE")
	_, _, err = readNames(t, "oci-archive:"+dir, Options{})
	require.ErrorContains(t, err, "it must be a regular file")
	out, err = exec.Command("gzip", archive).CombinedOutput()
	require.NoError(t, err, string(out))
	_, _, err = readNames(t, "oci-archive:"+archive+".gz", Options{})
	require.ErrorContains(t, err, "it is compressed with gzip; decompress it first")
}

// TestOldDockerArchive: docker before 25 wrote a layer that it had already as a link to it.
func TestOldDockerArchive(t *testing.T) {
	layer := sourcetest.Tar(t, "a=1")
	digest, _, err := v1.SHA256(bytes.NewReader(layer))
	require.NoError(t, err)
	config, err := json.Marshal(v1.ConfigFile{RootFS: v1.RootFS{DiffIDs: []v1.Hash{digest, digest}}})
	require.NoError(t, err)
	archive := sourcetest.Tar(t, `manifest.json=[{"Config":"c.json","Layers":["x/layer.tar","y/layer.tar"]}]`, "c.json="+string(config),
		"x/", "x/layer.tar="+string(layer), "y/", "y/layer.tar>../x/layer.tar")
	path := filepath.Join(t.TempDir(), "old.tar")
	require.NoError(t, os.WriteFile(path, archive, 0o644))
	_, layers, err := readNames(t, "docker-archive:"+path, Options{})
	require.NoError(t, err)
	assert.Equal(t, []string{"a", "a"}, layers)
}

func TestPlainSources(t *testing.T) {
	nstest.NeedRoot(t)
	text := sourcetest.Tar(t, "a=1", "b/")
	dir := t.TempDir()
	for program, ending := range map[string]string{"": "", "gzip": ".gz", "xz": ".xz", "bzip2": ".bz2"} {
		path := filepath.Join(dir, "x.tar")
		require.NoError(t, os.WriteFile(path, text, 0o644))
		if program != "" {
			if _, err := exec.LookPath(program); err != nil {
				t.Logf("needs %s: not tested", program)
				continue
			}
			require.NoError(t, exec.Command(program, path).Run())
		}
		image, layers, err := readNames(t, "tar:"+path+ending, Options{})
		require.NoError(t, err, program)
		assert.Equal(t, []string{"a b/"}, layers, program)
		assert.False(t, image.Layered)
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "bad.xz"), []byte("\xfd7zXZ\x00nonsense"), 0o644))
	_, _, err := readNames(t, "tar:"+filepath.Join(dir, "bad.xz"), Options{})
	require.ErrorContains(t, err, "cannot decompress it with xz: exit status 1: xz: ")
	_, _, err = readNames(t, "tar:"+filepath.Join(dir, "missing"), Options{})
	require.ErrorContains(t, err, "missing: no such file or directory")
}

func TestDirectoryAsASource(t *testing.T) {
	dir := t.TempDir()
	nstest.WriteFile(t, filepath.Join(dir, "a"), "1")
	require.NoError(t, os.Link(filepath.Join(dir, "a"), filepath.Join(dir, "b")))
	nstest.WriteFile(t, filepath.Join(dir, ".gojail.lock"), "")
	nstest.Symlink(t, "/etc/passwd", filepath.Join(dir, "c"))
	_, layers, err := readNames(t, "dir:"+dir, Options{})
	require.NoError(t, err)
	assert.Equal(t, []string{"./ ./a ./b ./c"}, layers)
	digest := func() (sum string) {
		source, err := ParseSource("dir:" + dir)
		require.NoError(t, err)
		image, err := source.Open(context.Background(), Options{})
		require.NoError(t, err)
		stored, err := image.Layers[0].Open(context.Background())
		require.NoError(t, err)
		defer stored.Close()
		sum, err = image.Layers[0].Read(context.Background(), stored, enough, confine, discardContent)
		require.NoError(t, err)
		return sum
	}
	assert.Equal(t, digest(), digest(), "the same tree has the same digest")
	_, _, err = readNames(t, "dir:"+dir+"/a", Options{})
	require.ErrorContains(t, err, "a is not a directory")
	_, _, err = readNames(t, "dir:"+dir+"/missing", Options{})
	require.ErrorContains(t, err, "missing: no such file or directory")
}

// TestProgramsEndWithTheirReader: tar ends when its reader is closed early.
func TestProgramsEndWithTheirReader(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "large"), bytes.Repeat([]byte("x"), 1<<20), 0o644))
	source, err := ParseSource("dir:" + dir)
	require.NoError(t, err)
	image, err := source.Open(context.Background(), Options{})
	require.NoError(t, err)
	stored, err := image.Layers[0].Open(context.Background())
	require.NoError(t, err)
	_, err = stored.Read(make([]byte, 10))
	require.NoError(t, err)
	require.NoError(t, stored.Close())
	require.NoError(t, stored.Close())
}

func TestDebootstrapReportsItsError(t *testing.T) {
	if _, err := exec.LookPath("mmdebstrap"); err != nil {
		t.Skip("needs mmdebstrap")
	}
	_, _, err := readNames(t, "debootstrap:trixie", Options{Debootstrap: []string{"--variant=nonsense"}})
	require.ErrorContains(t, err, "cannot make a tree of Debian trixie: exit status ")
	require.ErrorContains(t, err, "E: invalid variant")
}

func TestLayersAreVerified(t *testing.T) {
	text := sourcetest.Tar(t, "a="+strings.Repeat("x", 100_000))
	sum := func(b []byte) string {
		digest, _, err := v1.SHA256(bytes.NewReader(b))
		require.NoError(t, err)
		return digest.String()
	}
	var gz bytes.Buffer
	w := gzip.NewWriter(&gz)
	_, err := w.Write(text)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	encoder, err := zstd.NewWriter(nil)
	require.NoError(t, err)
	wrong := sum(nil)
	for kind, stored := range map[string][]byte{"plain": text, "gzip": gz.Bytes(), "zstd": encoder.EncodeAll(text, nil)} {
		right := Layer{Digest: sum(stored), diffID: sum(text), Size: int64(len(stored))}
		attempt := func(change func(l *Layer), stored []byte, bytesMax int64) error {
			l := right
			if change != nil {
				change(&l)
			}
			digest, err := l.Read(context.Background(), bytes.NewReader(stored), bytesMax, confine, discardContent)
			if err == nil {
				assert.Equal(t, sum(stored), digest)
			}
			return err
		}
		require.NoError(t, attempt(nil, stored, enough), kind)
		require.NoError(t, attempt(func(l *Layer) { *l = Layer{} }, stored, enough), kind)
		require.ErrorContains(t, attempt(func(l *Layer) { l.Digest = wrong }, stored, enough), "instead of "+wrong+": it is damaged, or not what the manifest names", kind)
		require.ErrorContains(t, attempt(func(l *Layer) { l.diffID = wrong }, stored, enough), "instead of "+wrong+": it is damaged, or not what the configuration names", kind)
		require.ErrorContains(t, attempt(func(l *Layer) { l.Size = 7 }, stored, enough), "bytes instead of 7", kind)
		require.ErrorIs(t, attempt(nil, stored, 1000), errTooLarge, kind)
		require.Error(t, attempt(nil, stored[:len(stored)-30], enough), kind)
	}
}

func TestReadPassesErrorsOn(t *testing.T) {
	mine := errors.New("mine")
	l := Layer{}
	_, err := l.Read(context.Background(), strings.NewReader("x"), enough, confine, func(io.Reader) error { return mine })
	require.ErrorIs(t, err, mine)
	_, err = l.Read(context.Background(), io.MultiReader(strings.NewReader("x"), failing{mine}), enough, confine, discardContent)
	require.ErrorIs(t, err, mine)
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

func FuzzLayout(f *testing.F) {
	f.Add(`{"manifests":[{"mediaType":"application/vnd.oci.image.manifest.v1+json","digest":"sha256:%s"}]}`, `{"config":{"digest":"sha256:x"},"layers":[{}]}`, "t")
	f.Add(`{"manifests":[{"platform":{"os":"linux"}},{"platform":null}]}`, `{}`, "")
	f.Fuzz(func(_ *testing.T, index, manifest, tag string) {
		b := fakeBlobs{}
		d := b.addBlob(manifest, types.OCIManifestSchema1)
		b["index.json"] = []byte(strings.ReplaceAll(index, "%s", d.Digest.Hex))
		if image, err := readLayout(b, tag, ""); err == nil {
			for _, l := range image.Layers {
				readLayer(l)
			}
		}
		b["manifest.json"] = []byte(manifest)
		readDockerArchive(b, tag, "")
	})
}

func FuzzTarBlobs(f *testing.F) {
	f.Add(sourcetest.Tar(f, "a=1", "b>a", "c&b", "d/"), "c")
	f.Fuzz(func(t *testing.T, archive []byte, name string) {
		path := filepath.Join(t.TempDir(), "x.tar")
		require.NoError(t, os.WriteFile(path, archive, 0o600))
		if b, err := openTarBlobs(path); err == nil {
			readDocument(b, name)
			b.Close()
		}
	})
}

func ExampleParseSource() {
	_, err := ParseSource("debian:13")
	fmt.Println(err)
	// Output: "debian:13" is not a source of a jail; write one of: oci:DIR[:TAG], oci-archive:FILE[:TAG], docker-archive:FILE[:TAG], docker://REGISTRY/NAME[:TAG|@DIGEST], dir:DIR, tar:FILE, debootstrap:SUITE
}
