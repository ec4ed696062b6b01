// SPDX-License-Identifier: Apache-2.0

package pool

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/internal/deadline"
	"github.com/gojail/gojail/internal/filelock"
	"github.com/gojail/gojail/internal/trusted"
	"github.com/gojail/gojail/netsetup/config"
)

// shared is a pool whose leases lie in a directory that all nodes share.
type shared struct {
	name   string
	root   string // directory of the pool
	node   string
	usable usable
	lock   string // lock file on this node
	now    func() time.Time
}

func openShared(ctx context.Context, p *config.Pool, addresses usable, node, state string) (Pool, error) {
	if !isWord(node) || !isWord(p.Name) {
		return nil, fmt.Errorf("pool %q, node %q: the names may hold letters, digits and ._+- only", p.Name, node)
	}
	if err := os.Mkdir(state, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("pool %s: cannot create the directory %s: %w", p.Name, state, errors.Unwrap(err))
	}
	s := &shared{
		name: p.Name, root: filepath.Join(p.Directory, p.Name), node: node, usable: addresses,
		lock: filepath.Join(state, "pool-"+p.Name+".lock"), now: time.Now,
	}
	if err := trusted.Parents(s.lock); err != nil {
		return nil, err
	}
	_, err := runLocked(ctx, s, "open", func() (struct{}, error) { return struct{}{}, s.prepare(p.Directory) })
	if err != nil {
		return nil, err
	}
	return s, nil
}

// CheckDirectory reports whether a directory is fit for leases, and returns its owner. It
// creates nothing. If a file server maps root to another user, the directory belongs to that
// user, which is checked when a lease is made.
func CheckDirectory(dir string) (owner uint32, err error) {
	if err := trusted.Parents(dir); err != nil {
		return 0, err
	}
	var st unix.Stat_t
	if err := unix.Lstat(dir, &st); err != nil {
		return 0,
			fmt.Errorf("cannot stat %s: %w; mount its file system, or create it once for all nodes: mkdir -m 700 %[1]s",
				dir, err)
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR {
		return 0, fmt.Errorf("%s is not a directory", dir)
	}
	if st.Mode&0o077 != 0 {
		return 0, fmt.Errorf("%s is accessible to others than its owner (mode %04o); run: chmod 700 %[1]s", dir,
			st.Mode&0o7777)
	}
	return st.Uid, nil
}

// prepare checks the directory and creates the pool's own part of it.
func (s *shared) prepare(dir string) error {
	if err := s.checkDirectory(dir); err != nil {
		return err
	}
	for _, sub := range []string{"", "addresses", "nodes", "nodes/" + s.node, "full", "quarantine"} {
		if err := os.Mkdir(s.joinPath(sub), 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	f, err := os.OpenFile(s.selfPath(), os.O_RDONLY|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return err
	}
	return f.Close()
}

// checkDirectory fails unless root alone can change the directory.
func (s *shared) checkDirectory(dir string) error {
	owner, err := CheckDirectory(dir)
	if err != nil || owner == 0 {
		return err
	}
	return s.checkSquashed(dir, owner)
}

// checkSquashed accepts a directory of another owner only if the file server maps root to that owner, which shows in
// the owner of a directory that root creates there.
func (s *shared) checkSquashed(dir string, owner uint32) error {
	path := filepath.Join(dir, "who,"+s.node+","+s.name) // pools may share a directory
	var st unix.Stat_t
	err := os.Mkdir(path, 0o700)
	if errors.Is(err, fs.ErrExist) { // left by a killed process
		os.Remove(path)
		err = os.Mkdir(path, 0o700)
	}
	if err == nil {
		err = unix.Lstat(path, &st)
		os.Remove(path)
	}
	if err != nil {
		return err
	}
	if st.Uid != owner {
		return fmt.Errorf("%s belongs to uid %d, but what root creates there belongs to uid %d; run: chown %d %s", dir,
			owner, st.Uid, st.Uid, dir)
	}
	return nil
}

// runLocked calls f with the node's lock of the pool. If the context ends first, f continues
// with the lock once the server is back: f can be repeated after every part of it.
func runLocked[T any](ctx context.Context, s *shared, what string, f func() (T, error)) (T, error) {
	lock, err := s.takeLock(ctx)
	if err == nil && ctx.Err() != nil { // f would write leases on behalf of nobody
		lock.Close()
		err = errors.New("the caller has no time left")
	}
	if err != nil {
		var none T
		return none, fmt.Errorf("pool %s: cannot %s: %w", s.name, what, err)
	}
	return waitForAnswer(ctx, s, what, func() (T, error) {
		defer lock.Close()
		return retryStale(f)
	})
}

// waitForAnswer calls f and returns its result, or fails when the context ends: a file
// server that hangs blocks f in the kernel.
func waitForAnswer[T any](ctx context.Context, s *shared, what string, f func() (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	r, inTime := deadline.Call(ctx, func() (r result) {
		r.value, r.err = f()
		return r
	})
	if !inTime {
		r.err = fmt.Errorf("%s does not answer in time; check its file server", s.root)
	}
	if r.err != nil {
		return r.value, fmt.Errorf("pool %s: cannot %s: %w%s", s.name, what, r.err, advise(r.err))
	}
	return r.value, nil
}

// retryStale calls f again while a handle is stale (NFS): the next call looks its paths up
// again.
func retryStale[T any](f func() (T, error)) (value T, err error) {
	for range 3 {
		if value, err = f(); !errors.Is(err, unix.ESTALE) {
			break
		}
	}
	return value, err
}

// takeLock takes the lock of this node, which ends with its process. The lock file is local,
// so that no other node and no lock manager can delay this node.
func (s *shared) takeLock(ctx context.Context) (*os.File, error) {
	file, err := filelock.Wait(ctx, s.lock)
	if errors.Is(err, filelock.ErrBusy) {
		return nil,
			fmt.Errorf("another process of this node holds %s for too long; check whether the file server of %s hangs",
				s.lock, s.root)
	}
	return file, err
}

// advise returns what to do about an errno.
func advise(err error) string {
	switch {
	case errors.Is(err, unix.EACCES), errors.Is(err, unix.EPERM):
		return "; the file server refuses this node's root: export it with no_root_squash, or give the directory to " +
			"the account that root is squashed to"
	case errors.Is(err, unix.ENOSPC), errors.Is(err, unix.EDQUOT):
		return "; free space in the file system, or raise its quota"
	case errors.Is(err, unix.EROFS):
		return "; mount it writable"
	case errors.Is(err, unix.ESTALE):
		return "; mount the file system again"
	}
	return ""
}
