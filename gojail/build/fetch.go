// SPDX-License-Identifier: Apache-2.0

package build

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"github.com/gojail/gojail/gojail/source"
	"github.com/gojail/gojail/gojail/store"
	"github.com/gojail/gojail/internal/oneline"
)

// fetchesMax is the number of layers that are fetched in parallel, as in docker and podman.
const fetchesMax = 3

// fetcher fetches remote layers to files, in the order in which they are needed.
type fetcher struct {
	ctx    context.Context
	cancel func()
	layers []*source.Layer
	spools []*spool // nil: the layer is read from its source
	wait   sync.WaitGroup
}

// newFetcher begins to fetch the remote layers, which may have bytesMax bytes together as they are stored.
func newFetcher(ctx context.Context, cancel func(), work *store.Work, layers []*source.Layer, bytesMax int64) (*fetcher,
	error) {
	left := bytesMax
	for _, l := range layers {
		if !l.Remote {
			continue
		}
		if left -= l.Size; l.Size < 0 || left < 0 {
			return nil,
				fmt.Errorf("the layers have more than %d bytes together; if the source is trusted, raise --max-size",
					bytesMax)
		}
	}
	f := &fetcher{ctx: ctx, cancel: cancel, layers: layers, spools: make([]*spool, len(layers))}
	slots := make(chan struct{}, fetchesMax)
	for n, l := range layers {
		if !l.Remote {
			continue
		}
		s := newSpool(work.Path(fmt.Sprintf("layer-%d", n)))
		f.spools[n] = s
		f.wait.Add(1)
	}
	go f.fetchAll(slots)
	return f, nil
}

func (f *fetcher) fetchAll(slots chan struct{}) {
	for n, s := range f.spools {
		if s == nil {
			continue
		}
		slots <- struct{}{}
		go func() {
			defer f.wait.Done()
			s.fetchLayer(f.ctx, f.layers[n])
			<-slots
		}()
	}
}

// stop waits for the end of all transfers, and cancels them first if there is an error.
func (f *fetcher) stop(err error) {
	if err != nil {
		f.cancel()
	}
	f.wait.Wait()
}

// open returns a reader of a layer as it is stored at its source, which may wait for its transfer.
func (f *fetcher) open(n int) (io.ReadCloser, error) {
	if s := f.spools[n]; s != nil {
		return s.open()
	}
	return f.layers[n].Open(f.ctx)
}

// spool is a file that one goroutine writes while another one reads it.
type spool struct {
	path    string
	changed *sync.Cond
	written int64 // guarded by changed.L, as are the fields below
	err     error // io.EOF: the file is complete
	started bool
}

func newSpool(path string) *spool { return &spool{path: path, changed: sync.NewCond(&sync.Mutex{})} }

// fetchLayer copies a layer to the file.
func (s *spool) fetchLayer(ctx context.Context, l *source.Layer) {
	file, err := os.OpenFile(s.path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	s.advance(0, oneline.Cause(err))
	if err == nil {
		err = s.copyLayer(ctx, file, l)
		file.Close()
	}
	if err == nil {
		err = io.EOF
	}
	s.advance(0, err)
}

// copyLayer copies a layer to an open file.
func (s *spool) copyLayer(ctx context.Context, file *os.File, l *source.Layer) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	source, err := l.Open(ctx)
	if err != nil {
		return err
	}
	defer source.Close()
	copied, err := io.Copy(writerFunc(func(p []byte) (int, error) {
		if ctx.Err() != nil {
			return 0, context.Cause(ctx)
		}
		n, err := file.Write(p)
		s.advance(int64(n), nil)
		return n, oneline.Cause(err)
	}), io.LimitReader(source, l.Size+1))
	if err != nil {
		return fmt.Errorf("cannot fetch it: %w", err)
	}
	if copied > l.Size {
		return fmt.Errorf("it has more than the %d bytes that the manifest says", l.Size)
	}
	return nil
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// advance adds written bytes and stores the first error, and wakes the reader.
func (s *spool) advance(n int64, err error) {
	s.changed.L.Lock()
	defer s.changed.L.Unlock()
	s.written += n
	s.started = true
	if s.err == nil {
		s.err = err
	}
	s.changed.Broadcast()
}

// open returns a reader that waits for data that has not been written yet. Closing it removes the file.
func (s *spool) open() (io.ReadCloser, error) {
	s.changed.L.Lock()
	for !s.started {
		s.changed.Wait()
	}
	s.changed.L.Unlock()
	file, err := os.Open(s.path)
	if err != nil {
		s.changed.L.Lock()
		defer s.changed.L.Unlock()
		return nil, errors.Join(s.err, oneline.Cause(err))
	}
	return &spoolReader{spool: s, file: file}, nil
}

type spoolReader struct {
	*spool
	file *os.File
	read int64
}

func (r *spoolReader) Read(p []byte) (int, error) {
	r.changed.L.Lock()
	for r.read == r.written && r.err == nil {
		r.changed.Wait()
	}
	left, err := r.written-r.read, r.err
	r.changed.L.Unlock()
	if left == 0 {
		return 0, err
	}
	n, err := r.file.Read(p[:min(int64(len(p)), left)])
	r.read += int64(n)
	return n, err
}

func (r *spoolReader) Close() error { return errors.Join(r.file.Close(), os.Remove(r.path)) }
