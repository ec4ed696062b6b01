// SPDX-License-Identifier: Apache-2.0

package build

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/gojail/source/sourcetest"
	"github.com/gojail/gojail/gojail/store"
	"github.com/gojail/gojail/gojail/unpack"
	"github.com/gojail/gojail/internal/nstest"
)

// buildVariable makes this test binary a build: its value is the store, then the source.
const buildVariable = "GOJAIL_TEST_BUILD"

func TestMain(m *testing.M) {
	switch last := os.Args[len(os.Args)-1]; {
	case strings.HasPrefix(last, "{"):
		unpack.Child(last)
	case os.Getenv(buildVariable) != "":
		dir, source, _ := strings.Cut(os.Getenv(buildVariable), " ")
		s, err := store.Open(dir)
		if err == nil {
			var jail *store.Jail
			if jail, err = s.MakeJail("debian"); err == nil {
				err = buildOrEdit(jail, source)
			}
		}
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

var self = []string{"/proc/self/exe"}

func request(source string) Request {
	return Request{Source: source, Policy: unpack.Policy{Devices: unpack.DevicesDrop}, Limits: unpack.DefaultLimits, Format: store.FormatDir, By: "me", Self: self}
}

func newJail(t *testing.T) (*store.Jail, string) {
	t.Helper()
	nstest.NeedRoot(t)
	nstest.NoLeaks(t)
	dir := t.TempDir()
	s, err := store.Open(dir)
	require.NoError(t, err)
	jail, err := s.MakeJail("debian")
	require.NoError(t, err)
	return jail, filepath.Join(dir, "debian")
}

// mustBeClean fails if a work item is left.
func mustBeClean(t *testing.T, dir string) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(dir, "work"))
	require.NoError(t, err)
	require.Empty(t, entries)
}

func TestBuildFromALayout(t *testing.T) {
	jail, dir := newJail(t)
	image := sourcetest.Image(t, []string{"etc/", "etc/a=1", "etc/b=1"}, []string{"etc/.wh.a=", "etc/c=22"})
	digest, err := image.Digest()
	require.NoError(t, err)
	r := request("oci:" + sourcetest.Layout(t, map[string]v1.Image{"13": image}) + ":13")
	r.Targets = func(root string) ([]string, error) {
		assert.FileExists(t, filepath.Join(root, "etc/c"))
		return []string{"directory /tmp"}, os.Mkdir(filepath.Join(root, "tmp"), 0o755)
	}
	var stages []string
	r.Report = func(p Progress) {
		if len(stages) == 0 || stages[len(stages)-1] != p.Stage {
			stages = append(stages, p.Stage)
		}
	}
	record, err := Build(context.Background(), jail, r)
	require.NoError(t, err)
	assert.Equal(t, []string{"opening " + r.Source, "unpacking", "creating mount targets", "writing to the disk", "listing the files", "publishing"}, stages)
	assert.Equal(t, digest.String(), record.Digest)
	assert.Regexp(t, `^\d{8}-\d{6}-`+digest.Hex[:8]+"$", record.Version)
	assert.WithinDuration(t, time.Now(), record.Built, time.Minute)
	assert.Equal(t, [3]int64{5, 4, 4}, [3]int64{record.Entries, record.Bytes, record.Stored})
	assert.Equal(t, []string{"directory /tmp"}, record.Targets)

	v, err := jail.Version(record.Version)
	require.NoError(t, err)
	require.NoError(t, v.Err)
	assert.Equal(t, *record, v.Record)
	assert.False(t, v.Current)
	text, err := os.ReadFile(filepath.Join(jail.Path(v), ".gojail.version"))
	require.NoError(t, err)
	assert.Equal(t, record.Version+"\n", string(text))
	assert.NoFileExists(t, filepath.Join(jail.Path(v), "etc/a"))
	assert.Empty(t, verify(t, jail, v))
	mustBeClean(t, dir)

	require.NoError(t, os.WriteFile(filepath.Join(jail.Path(v), "etc/c"), []byte("33"), 0o644))
	require.NoError(t, os.Remove(filepath.Join(jail.Path(v), "etc/b")))
	assert.Equal(t, []string{"missing ./etc/b", "changed ./etc/c (content)"}, verify(t, jail, v))
}

func verify(t *testing.T, jail *store.Jail, v *store.Version) (list []string) {
	t.Helper()
	require.NoError(t, Verify(context.Background(), jail, v, self, func(d unpack.Difference) { list = append(list, d.String()) }))
	return list
}

func TestBuildOfImageFiles(t *testing.T) {
	for _, format := range []string{store.FormatSquashfs, store.FormatEROFS} {
		t.Run(format, func(t *testing.T) {
			jail, dir := newJail(t)
			if err := checkFormat(format); err != nil {
				t.Skip("needs a program: ", err)
			}
			r := request("oci:" + sourcetest.Layout(t, map[string]v1.Image{"": sourcetest.Image(t, []string{"a=1", "new\nline=2"})}))
			r.Format = format
			record, err := Build(context.Background(), jail, r)
			require.NoError(t, err)
			v, err := jail.Version(record.Version)
			require.NoError(t, err)
			info, err := os.Stat(jail.Path(v))
			require.NoError(t, err)
			assert.Equal(t, record.Stored, info.Size())
			assert.Equal(t, os.FileMode(0o644), info.Mode())
			assert.Empty(t, verify(t, jail, v))
			mustBeClean(t, dir)
			file, err := os.OpenFile(jail.Path(v), os.O_WRONLY, 0)
			require.NoError(t, err)
			_, err = file.WriteAt([]byte("x"), 100)
			require.NoError(t, err)
			require.NoError(t, file.Close())
			assert.Equal(t, []string{"changed " + jail.Path(v) + " (content)"}, verify(t, jail, v))
		})
	}
}

func TestEdit(t *testing.T) {
	for _, format := range []string{store.FormatDir, store.FormatSquashfs, store.FormatEROFS} {
		t.Run(format, func(t *testing.T) {
			jail, dir := newJail(t)
			if err := checkFormat(format); err != nil {
				t.Skip("needs a program: ", err)
			}
			ctx := context.Background()
			r := request("edit")
			_, err := Edit(ctx, jail, r, nil)
			require.ErrorContains(t, err, "jail debian has no current version")
			first := request("oci:" + sourcetest.Layout(t, map[string]v1.Image{"": sourcetest.Image(t, []string{"a=1", "b>a", "c&a"})}))
			first.Format = format
			base, err := Build(ctx, jail, first)
			require.NoError(t, err)
			_, err = jail.SwitchTo(ctx, base.Version, "me")
			require.NoError(t, err)

			failed := errors.New("the shell failed")
			_, err = Edit(ctx, jail, r, func(context.Context, string) error { return failed })
			require.ErrorIs(t, err, failed)
			mustBeClean(t, dir)

			record, err := Edit(ctx, jail, r, func(_ context.Context, root string) error {
				text, err := os.ReadFile(filepath.Join(root, "a"))
				require.NoError(t, err)
				require.Equal(t, "1", string(text))
				return errors.Join(os.WriteFile(filepath.Join(root, "new"), []byte("22"), 0o755), unix.Chmod(filepath.Join(root, "new"), 0o4755))
			})
			require.NoError(t, err)
			assert.Equal(t, base.Version, record.Base)
			assert.Equal(t, format, record.Format)
			assert.Equal(t, "edit", record.Source)
			assert.Empty(t, record.Digest)
			assert.EqualValues(t, 1, record.LeftOut["set-ID bits"])
			v, err := jail.Version(record.Version)
			require.NoError(t, err)
			assert.False(t, v.Current)
			assert.Empty(t, verify(t, jail, v))
			old, err := jail.Version(base.Version)
			require.NoError(t, err)
			assert.Empty(t, verify(t, jail, old), "the version that was copied is as it was")
			mustBeClean(t, dir)
		})
	}
}

// TestEditOfTheVersionThatIsCurrentThen: somebody switches while an edit waits for the end of a build.
func TestEditOfTheVersionThatIsCurrentThen(t *testing.T) {
	jail, dir := newJail(t)
	ctx := context.Background()
	var list []string
	for _, file := range []string{"a=1", "a=2"} {
		record, err := Build(ctx, jail, request("oci:"+sourcetest.Layout(t, map[string]v1.Image{"": sourcetest.Image(t, []string{file})})))
		require.NoError(t, err)
		list = append(list, record.Version)
	}
	_, err := jail.SwitchTo(ctx, list[0], "me")
	require.NoError(t, err)
	work, err := jail.StartBuild(ctx, false)
	require.NoError(t, err)
	ended := make(chan error, 1)
	r := request("edit")
	r.Wait = true
	var record *store.Record
	go func() {
		var err error
		record, err = Edit(ctx, jail, r, func(context.Context, string) error { return nil })
		ended <- err
	}()
	time.Sleep(200 * time.Millisecond) // it waits
	_, err = jail.SwitchTo(ctx, list[1], "me")
	require.NoError(t, err)
	require.NoError(t, work.Remove())
	require.NoError(t, <-ended)
	assert.Equal(t, list[1], record.Base)
	mustBeClean(t, dir)
}

func TestBuildFails(t *testing.T) {
	layout := sourcetest.Layout(t, map[string]v1.Image{"": sourcetest.Image(t, []string{"a=1"}, []string{"../b/", "b=1"}, []string{".>/etc"})})
	small := sourcetest.Layout(t, map[string]v1.Image{"": sourcetest.Image(t, []string{"a=1"}, []string{"b=1", "c=1"})})
	blank := sourcetest.Layout(t, map[string]v1.Image{"": sourcetest.Image(t)})
	zip := filepath.Join(t.TempDir(), "zip")
	require.NoError(t, os.WriteFile(zip, []byte("PK\x03\x04 and so on"), 0o644))
	tarFile := func(entries ...string) string {
		path := filepath.Join(t.TempDir(), "tar")
		require.NoError(t, os.WriteFile(path, sourcetest.Tar(t, entries...), 0o644))
		return "tar:" + path
	}
	for name, test := range map[string]struct {
		source string
		change func(r *Request)
		want   string
	}{
		"oci as tar":    {tarFile("oci-layout={}", "index.json={}", "blobs/"), nil, ": this is an image and not a tree of files; write oci-archive:FILE for a tar file, oci:DIR for a directory"},
		"oci as dir":    {"dir:" + small, nil, ": this is an image and not a tree of files; write oci-archive:FILE for a tar file, oci:DIR for a directory"},
		"docker as tar": {tarFile("manifest.json=[]", "abc/", "abc/layer.tar=x"), nil, ": this is an archive of docker save and not a tree of files; write docker-archive:FILE"},
		"zip as tar":    {"tar:" + zip, nil, "layer 1 of 1: it is not a tar archive, but a zip archive; unpack it, and name the directory as dir:DIR"},
		"source":        {"debian", nil, `"debian" is not a source of a jail`},
		"format":        {"oci:" + small, func(r *Request) { r.Format = "zip" }, `format "zip": write dir, squashfs or erofs`},
		"policy":        {"oci:" + small, func(r *Request) { r.Policy.Devices = "" }, `device nodes: "": write drop, refuse or make`},
		"missing":       {"oci:" + small + "/missing", nil, "missing: no such file or directory"},
		"hostile":       {"oci:" + layout, nil, `: entry 1 of the archive, symbolic link ".": the root of a tree must be a directory`},
		"entries":       {"oci:" + small, func(r *Request) { r.Limits.Entries = 2 }, `entry 2 of the archive, file "c": there are more than 2 entries`},
		"bytes":         {"oci:" + small, func(r *Request) { r.Limits.Bytes = 2 }, `entry 2 of the archive, file "c": the files have more than 2 bytes together`},
		"empty":         {"oci:" + blank, nil, " has no files"},
		"targets": {"oci:" + small, func(r *Request) {
			r.Targets = func(string) ([]string, error) { return nil, errors.New("no targets") }
		}, "no targets"},
	} {
		t.Run(name, func(t *testing.T) {
			jail, dir := newJail(t)
			r := request(test.source)
			if test.change != nil {
				test.change(&r)
			}
			_, err := Build(context.Background(), jail, r)
			require.ErrorContains(t, err, test.want)
			versions, err := jail.Versions()
			require.NoError(t, err)
			assert.Empty(t, versions)
			mustBeClean(t, dir)
		})
	}
}

// slowRegistry is a registry with an image whose layers arrive in pieces.
func slowRegistry(t *testing.T, image v1.Image, serve func(w http.ResponseWriter, r *http.Request, inner http.Handler)) string {
	t.Helper()
	before := nstest.OpenFiles()
	t.Cleanup(func() { // goroutines of net/http close the connections, after everything else
		isNew := func(file string) bool { return !slices.Contains(before, file) }
		require.Eventually(t, func() bool { return !slices.ContainsFunc(nstest.OpenFiles(), isNew) }, time.Minute, 10*time.Millisecond,
			"descriptors left open; before: %v", before)
	})
	inner := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	ready := false
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if ready && strings.Contains(r.URL.Path, "/blobs/") {
			serve(w, r, inner)
			return
		}
		inner.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	_, address, _ := strings.Cut(server.URL, "://")
	reference, err := name.ParseReference(address + "/hpc/debian:13")
	require.NoError(t, err)
	require.NoError(t, remote.Write(reference, image))
	ready = true
	t.Cleanup(http.DefaultTransport.(*http.Transport).CloseIdleConnections)
	t.Cleanup(remote.DefaultTransport.(*http.Transport).CloseIdleConnections)
	return "docker://" + address + "/hpc/debian:13"
}

func TestBuildFromARegistryFetchesInParallel(t *testing.T) {
	jail, dir := newJail(t)
	var layers [][]string
	for i := range 8 {
		layers = append(layers, []string{fmt.Sprintf("f%d=%s", i, strings.Repeat("x", 300_000))})
	}
	image := sourcetest.Image(t, layers...)
	var now, most atomic.Int32
	source := slowRegistry(t, image, func(w http.ResponseWriter, r *http.Request, inner http.Handler) {
		if n := now.Add(1); n > most.Load() {
			most.Store(n)
		}
		defer now.Add(-1)
		time.Sleep(20 * time.Millisecond) // as a registry that is far away
		inner.ServeHTTP(w, r)
	})
	record, err := Build(context.Background(), jail, request(source))
	require.NoError(t, err)
	assert.EqualValues(t, 8, record.Entries)
	assert.Greater(t, most.Load(), int32(1), "layers are fetched in parallel")
	assert.LessOrEqual(t, most.Load(), int32(fetchesMax))
	v, err := jail.Version(record.Version)
	require.NoError(t, err)
	assert.Empty(t, verify(t, jail, v))
	mustBeClean(t, dir)
}

func TestBuildFromARegistryThatBreaks(t *testing.T) {
	image := sourcetest.Image(t, []string{"a=1"}, []string{"b=" + strings.Repeat("x", 300_000)})
	manifest, err := image.Manifest()
	require.NoError(t, err)
	second := manifest.Layers[1].Digest.String()
	for name, test := range map[string]struct {
		answer func(w http.ResponseWriter, r *http.Request, inner http.Handler)
		want   string
	}{
		"missing": {func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
			http.Error(w, "gone", http.StatusNotFound)
		}, "404 Not Found"},
		"other": {func(w http.ResponseWriter, _ *http.Request, _ http.Handler) { w.Write(bytes.Repeat([]byte("x"), 100)) }, "layer 2 of 2, " + second},
		"cut off": {func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
			w.Header().Set("Content-Length", "1000")
			w.Write([]byte("\x1f\x8b"))
		}, "layer 2 of 2, " + second},
	} {
		t.Run(name, func(t *testing.T) {
			jail, dir := newJail(t)
			source := slowRegistry(t, image, func(w http.ResponseWriter, r *http.Request, inner http.Handler) {
				if strings.HasSuffix(r.URL.Path, second) {
					test.answer(w, r, inner)
					return
				}
				inner.ServeHTTP(w, r)
			})
			_, err := Build(context.Background(), jail, request(source))
			require.ErrorContains(t, err, test.want)
			mustBeClean(t, dir)
		})
	}
}

func TestBuildIsInterrupted(t *testing.T) {
	jail, dir := newJail(t)
	hang := make(chan struct{})
	ctx, cancel := context.WithCancelCause(context.Background())
	image := sourcetest.Image(t, []string{"a=1"}, []string{"b=" + strings.Repeat("x", 300_000)})
	manifest, err := image.Manifest()
	require.NoError(t, err)
	source := slowRegistry(t, image, func(w http.ResponseWriter, r *http.Request, inner http.Handler) {
		if strings.HasSuffix(r.URL.Path, manifest.Layers[1].Digest.String()) {
			w.Write([]byte("\x1f\x8b"))
			w.(http.Flusher).Flush()
			cancel(errors.New("interrupted"))
			<-hang
			return
		}
		inner.ServeHTTP(w, r)
	})
	defer close(hang)
	_, err = Build(ctx, jail, request(source))
	require.Error(t, err)
	require.Error(t, ctx.Err())
	mustBeClean(t, dir)
}

func TestVersionsWithoutARecordCannotBeVerified(t *testing.T) {
	jail, dir := newJail(t)
	require.NoError(t, os.Mkdir(filepath.Join(dir, "versions/1"), 0o755))
	v, err := jail.Version("1")
	require.NoError(t, err)
	err = Verify(context.Background(), jail, v, self, nil)
	require.ErrorContains(t, err, "version 1 cannot be verified: ")
	require.ErrorIs(t, err, unix.ENOENT)
}
