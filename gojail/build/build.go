// SPDX-License-Identifier: Apache-2.0

// Package build makes a version of a jail from a source, and compares a version with its state when it was built.
//
// Build works in a work item of the store (gojail/store): source -> layers (gojail/source) -> tree, in a child whose
// root is the tree (gojail/unpack) -> mount targets -> version file -> list of files -> image file, if asked for -> one
// rename into versions/. Whatever fails or is killed on the way, no version appears.
//
// Layers of a registry are fetched to files of the work item, some at once, and unpacked in order while they arrive.
// Memory does not depend on the sizes of files or the number of layers; it grows with the entries of the largest layer,
// as gojail/unpack says.
package build

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync/atomic"
	"time"

	"github.com/gojail/gojail/gojail/source"
	"github.com/gojail/gojail/gojail/store"
	"github.com/gojail/gojail/gojail/unpack"
	"github.com/gojail/gojail/internal/oneline"
	"github.com/gojail/gojail/internal/version"
)

// Request describes a version to be built.
type Request struct {
	Source  string // argument of gojail jail build --from
	Image   source.Options
	Policy  unpack.Policy
	Limits  unpack.Limits // a limit of 0 is derived from the source
	Format  string        // a format of package store
	By      string
	Wait    bool     // wait for the end of another build of the jail
	Self    []string // the command of unpack.Tree
	Targets func(root string) ([]string, error)
	Report  func(Progress)
}

// Progress is the progress of a build.
type Progress struct {
	Stage  string // the current step
	Layer  int    // number of the current layer, from 1
	Layers int
	Bytes  int64 // bytes read of all layers
	Total  int64 // 0: unknown
}

// builder is one build.
type builder struct {
	*Request
	jail     *store.Jail
	work     *store.Work
	tree     unpack.Tree
	record   store.Record
	progress Progress
	cancel   func() // ends all transfers

	bounded bool         // whether expansionReader limits the bytes of the layers
	stored  atomic.Int64 // bytes read of all layers, as they are stored
	plain   int64        // bytes of all layers, decompressed
}

// Build builds a version of a jail and returns its record. The version does not become the current one. If Build
// returns both a record and an error, the version is built, but its work item could not be removed.
func Build(ctx context.Context, jail *store.Jail, r Request) (*store.Record, error) {
	parsed, err := source.ParseSource(r.Source)
	if err != nil {
		return nil, err
	}
	return withWork(ctx, jail, &r, func(ctx context.Context, b *builder) (*store.Record, error) {
		if err := os.Mkdir(b.tree.Dir, 0o755); err != nil {
			return nil, fmt.Errorf("cannot create the tree: %w", oneline.Cause(err))
		}
		b.report("opening " + r.Source)
		opened, err := parsed.Open(ctx, r.Image)
		if err != nil {
			return nil, err
		}
		defer opened.Close()
		if err := b.unpackImage(ctx, opened); err != nil {
			return nil, err
		}
		if err := checkImage(b.tree.Dir); err != nil {
			return nil, fmt.Errorf("%s: %w", r.Source, err)
		}
		return b.publishTree(ctx)
	})
}

// withWork creates a work item of the jail, calls do with it, and removes it.
func withWork(ctx context.Context, jail *store.Jail, r *Request, do func(context.Context, *builder) (*store.Record,
	error)) (record *store.Record, err error) {
	if err := checkFormat(r.Format); err != nil {
		return nil, err
	}
	if err := r.Policy.Check(); err != nil {
		return nil, err
	}
	work, err := jail.StartBuild(ctx, r.Wait)
	if err != nil {
		return nil, err
	}
	defer func() {
		if removeErr := work.Remove(); err == nil && removeErr != nil {
			err = fmt.Errorf("version %s is built, but its work directory cannot be removed: %w", record.Version,
				removeErr)
		}
	}()
	b := &builder{Request: r, jail: jail, work: work, tree: unpack.Tree{Dir: work.Path("tree"), Self: r.Self}}
	ctx, b.cancel = context.WithCancel(ctx)
	defer b.cancel()
	b.record = store.Record{Format: r.Format, Source: r.Source, By: r.By, Gojail: version.Text()}
	return do(ctx, b)
}

// report reports a step of the build.
func (b *builder) report(stage string) {
	b.progress.Stage = stage
	if b.Report != nil {
		b.Report(b.progress)
	}
}

// unpackImage unpacks all layers into the tree.
func (b *builder) unpackImage(ctx context.Context, i *source.Image) (err error) {
	b.record.Digest, b.record.Platform = i.Digest, i.Platform
	b.progress.Layers = len(i.Layers)
	for _, l := range i.Layers {
		b.progress.Total += l.Size
	}
	b.setLimits(i.Layers)
	fetch, err := newFetcher(ctx, b.cancel, b.work, i.Layers, streamMax(b.Limits))
	if err != nil {
		return err
	}
	defer func() { fetch.stop(err) }()
	var total unpack.Result
	for n, l := range i.Layers {
		b.progress.Layer = n + 1
		b.report("unpacking")
		digest, result, err := b.unpackLayer(ctx, fetch, n, i.Layered, total)
		if err != nil {
			return fmt.Errorf("layer %d of %d%s: %w", n+1, len(i.Layers), formatDigest(l.Digest), err)
		}
		total.Add(result)
		if b.record.Digest == "" {
			b.record.Digest = digest
		}
	}
	b.record.Entries, b.record.Bytes, b.record.LeftOut = total.Entries, total.Bytes, total.LeftOut
	return nil
}

// formatDigest returns the digest of a layer as a part of an error.
func formatDigest(digest string) string {
	if digest == "" {
		return ""
	}
	return ", " + digest
}

// unpackLayer unpacks one layer and returns its digest.
func (b *builder) unpackLayer(ctx context.Context, fetch *fetcher, n int, layered bool,
	total unpack.Result) (digest string, result unpack.Result, err error) {
	stored, err := fetch.open(n)
	if err != nil {
		return "", result, err
	}
	defer stored.Close()
	policy := b.Policy
	policy.Whiteouts = layered
	digest, err = fetch.layers[n].Read(ctx, &countingReader{stored, b}, streamMax(b.Limits), b.confine,
		func(r io.Reader) (err error) {
			result, err = b.tree.UnpackLayer(ctx, &expansionReader{r, b}, policy, b.Limits, total)
			return err
		})
	return digest, result, err
}

// confine confines a decompressor that is another program, for source.Layer.Read.
func (b *builder) confine(ctx context.Context, program string, args ...string) (*exec.Cmd, error) {
	return unpack.Confine(ctx, b.Self, program, args...)
}

// streamMax returns the maximum size of a tar stream within limits: the files, and the header and padding of each
// entry. Long names and attributes make a header larger than 512 bytes.
func streamMax(l unpack.Limits) int64 { return l.Bytes + l.Entries*8<<10 }

// countingReader reports each read as progress.
type countingReader struct {
	io.Reader
	b *builder
}

func (c *countingReader) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.b.stored.Add(int64(n))
	c.b.progress.Bytes += int64(n)
	c.b.report(c.b.progress.Stage)
	return n, err
}

// publishTree publishes the tree as a version.
func (b *builder) publishTree(ctx context.Context) (*store.Record, error) {
	r := &b.record
	r.Built = time.Now().UTC().Round(time.Second)
	if r.Entries == 0 {
		return nil, fmt.Errorf("%s has no files", b.Source)
	}
	var err error
	if r.Version, err = b.jail.NewID(r.Built, cmp.Or(r.Digest, randomDigest())); err != nil {
		return nil, err
	}
	b.report("creating mount targets")
	if b.Targets != nil {
		if r.Targets, err = b.Targets(b.tree.Dir); err != nil {
			return nil, err
		}
	}
	b.report("writing to the disk")
	if err := b.tree.Mark(ctx, r.Version); err != nil {
		return nil, err
	}
	b.report("listing the files")
	list := b.work.Path("list")
	if err := writeList(ctx, b.tree, list); err != nil {
		return nil, err
	}
	result, err := b.pack(ctx)
	if err != nil {
		return nil, err
	}
	b.report("publishing")
	if err := b.work.Publish(ctx, result, list, r); err != nil {
		return nil, err
	}
	return r, nil
}

// randomDigest returns a random digest for the name of a version that was edited and has no digest.
func randomDigest() string {
	sum := sha256.Sum256([]byte(rand.Text()))
	return "random:" + hex.EncodeToString(sum[:])
}

// hashFile returns the SHA-256 and the size of a file.
func hashFile(path string) (digest string, size int64, err error) {
	file, err := os.Open(path)
	if err != nil {
		return "", 0, fmt.Errorf("cannot read %s: %w", path, oneline.Cause(err))
	}
	defer file.Close()
	sum := sha256.New()
	if size, err = io.Copy(sum, file); err != nil {
		return "", 0, fmt.Errorf("cannot read %s: %w", path, oneline.Cause(err))
	}
	return hex.EncodeToString(sum.Sum(nil)), size, nil
}
