// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/healthcheck/check"
)

// Storage that has not answered after this long hangs. Shorter than the checks'
// Timeout, so that the finding can name the file system.
const storagePatience = 4 * time.Second

// mounted looks at the mount table alone, which never hangs.
func mounted(_ context.Context, h *check.Host, s *check.Settings) check.Finding {
	f, err := os.Open(filepath.Join(h.Roots.Proc, "self/mountinfo"))
	if err != nil {
		return check.Found(check.Unknown, "cannot read the mount table: %v", err)
	}
	defer f.Close()
	mounts, err := mountinfo.GetMountsFromReader(f, nil)
	if err != nil || len(mounts) == 0 {
		return check.Found(check.Unknown, "cannot understand the mount table")
	}
	at := map[string]*mountinfo.Info{} // the last one of a path is what is seen there
	for _, m := range mounts {
		at[m.Mountpoint] = m
	}
	var p problems
	for _, fs := range fileSystems(s) {
		m := at[filepath.Clean(fs.Path)]
		for dir := fs.Path; m == nil && fs.Any && dir != "/"; m = at[dir] {
			dir = filepath.Dir(dir)
		}
		switch {
		case m == nil:
			p.failed("%s is not mounted", fs.Path)
		case !fs.ReadOnly && (option(m.Options, "ro") || option(m.VFSOptions, "ro")):
			p.failed("%s is mounted read-only", fs.Path)
		}
	}
	return p.finding("all file systems are mounted as configured")
}

// A file system that was full is so until this much less of it is used, in percent.
const roomAgain = 3

// From this on one is full for which health.toml has no `full`, in percent.
const fullAnyway = 98

// full asks each file system for its space. One that is full drains the node only if
// health.toml says from when on it is: what the jobs of users may write to, as /tmp,
// /home or gojail's scratch, one of them could fill on every node.
func full(ctx context.Context, h *check.Host, s *check.Settings) check.Finding {
	var before []string
	if json.Unmarshal(h.Kept, &before) != nil {
		before = nil
	}
	f, full := eachFileSystem(ctx, s, func(fs check.FileSystem, p *problems) {
		var st unix.Statfs_t
		if err := unix.Statfs(fs.Path, &st); err != nil {
			p.failed("%s does not tell its space: %v", fs.Path, err)
			return
		}
		if st.Flags&unix.ST_RDONLY != 0 {
			return // an image is always full
		}
		limit, say := fs.Full, p.failed
		if limit == 0 {
			limit, say = fullAnyway, p.warned
		}
		if slices.Contains(before, fs.Path) {
			limit -= roomAgain
		}
		judgeSpace(p, fs.Path, limit, &st, say)
	})
	f.Keep, _ = json.Marshal(full)
	return f
}

func judgeSpace(p *problems, path string, limit float64, st *unix.Statfs_t, say func(format string, args ...any)) {
	for _, what := range []struct {
		name        string
		free, total uint64
	}{{"space", st.Bavail, st.Blocks - st.Bfree + st.Bavail}, {"inodes", st.Ffree, st.Files}} {
		if what.total == 0 || what.free > what.total {
			continue // file systems without inodes of their own say 0
		}
		used := 100 * (1 - float64(what.free)/float64(what.total))
		p.note("%s: %.1f%% of %s used", path, used, what.name)
		switch {
		case used >= limit:
			say("%s is full (%s)", path, what.name)
		case used >= limit-3:
			p.warned("%s is nearly full (%s)", path, what.name)
		}
	}
}

// writable writes a file of its own in each file system.
func writable(ctx context.Context, _ *check.Host, s *check.Settings) check.Finding {
	f, _ := eachFileSystem(ctx, s, func(fs check.FileSystem, p *problems) {
		err := probe(fs)
		switch {
		case errors.Is(err, unix.ENOSPC), errors.Is(err, unix.EDQUOT):
			p.warned("%s has no room for a file", fs.Path) // fs-full judges that
		case err != nil:
			p.failed("%s: %v", fs.Path, err)
		}
	})
	return f
}

func probe(fs check.FileSystem) error {
	if fs.ReadOnly {
		dir, err := os.Open(fs.Path)
		if err != nil {
			return fmt.Errorf("cannot be read: %w", cause(err))
		}
		return dir.Close()
	}
	f, remove, err := scratch(fs.Path)
	if err != nil {
		return fmt.Errorf("no file can be made: %w", cause(err))
	}
	defer f.Close()
	defer remove()
	if err := writeThrough(f); err != nil {
		return fmt.Errorf("cannot be written: %w", cause(err))
	}
	return nil
}

// writeThrough writes to the disk or the server itself (open(2), O_DIRECT). A flush may
// have to wait for all that jobs have written (ext4, data=ordered), which takes minutes
// where they write a lot; it is for file systems that know nothing else.
func writeThrough(f *os.File) error {
	page, err := unix.Mmap(-1, 0, os.Getpagesize(), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE) // aligned
	if err != nil {
		return err
	}
	defer unix.Munmap(page)
	copy(page, "gojail-healthcheck\n")
	if _, err = unix.FcntlInt(f.Fd(), unix.F_SETFL, unix.O_DIRECT); err == nil {
		if _, err = f.Write(page); !errors.Is(err, unix.EINVAL) {
			return err
		}
		if _, err = unix.FcntlInt(f.Fd(), unix.F_SETFL, 0); err != nil {
			return err
		}
	}
	if _, err := f.Write(page); err != nil {
		return err
	}
	return f.Sync()
}

// scratch makes a file without a name, which is gone with this process whatever
// becomes of it (O_TMPFILE); NFS and some others have none, and get one with a name.
func scratch(dir string) (f *os.File, remove func(), err error) {
	fd, err := unix.Open(dir, unix.O_TMPFILE|unix.O_WRONLY|unix.O_CLOEXEC, 0o600)
	if err == nil {
		return os.NewFile(uintptr(fd), dir), func() {}, nil
	}
	// os.CreateTemp never opens what is there already: others may write to the directory too.
	if f, err = os.CreateTemp(dir, ".gojail-healthcheck-*"); err != nil {
		return nil, nil, err
	}
	return f, func() { os.Remove(f.Name()) }, nil
}

// cause leaves out the path, which has a random part.
func cause(err error) error {
	var path *os.PathError
	if errors.As(err, &path) {
		return path.Err
	}
	return err
}

// eachFileSystem looks at all of them at once and names those that hang; it also
// tells which ones failed.
func eachFileSystem(ctx context.Context, s *check.Settings, look func(check.FileSystem, *problems)) (f check.Finding, failed []string) {
	ctx, cancel := context.WithTimeout(ctx, storagePatience)
	defer cancel()
	answers := make([]chan *problems, len(fileSystems(s)))
	for i, fs := range fileSystems(s) {
		answers[i] = make(chan *problems, 1)
		go func() {
			p := &problems{}
			look(fs, p)
			answers[i] <- p
		}()
	}
	var all problems
	for i, fs := range fileSystems(s) {
		before := len(all.fail)
		if p, ok := await(ctx, answers[i]); ok {
			all.add(p)
		} else {
			all.failed("%s does not answer", fs.Path)
		}
		if len(all.fail) > before {
			failed = append(failed, fs.Path)
		}
	}
	return all.finding("all file systems answer"), failed
}

func option(list, name string) bool {
	return slices.Contains(strings.Split(list, ","), name)
}

// fileSystems are the configured ones, or just the root, which may well be read-only.
// Not in DefaultSettings: decoding a file over it would leave parts of an element.
func fileSystems(s *check.Settings) []check.FileSystem {
	if len(s.FileSystems) == 0 {
		return []check.FileSystem{{Path: "/", Any: true, ReadOnly: true}}
	}
	return s.FileSystems
}
