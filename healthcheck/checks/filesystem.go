// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"cmp"
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
	"github.com/gojail/gojail/internal/deadline"
	"github.com/gojail/gojail/internal/procfs"
)

// storagePatience is the time after which unresponsive storage counts as hung. It is shorter
// than the checks' Timeout, so that the finding can name the file system.
const storagePatience = 4 * time.Second

// mounted checks the mount table only, which never hangs.
func mounted(_ context.Context, h *check.Host, s *check.Settings) check.Finding {
	mounts, err := procfs.ReadMounts(filepath.Join(h.Roots.Proc, "self"))
	if err != nil || len(mounts) == 0 {
		return check.NewFinding(check.Unknown, "cannot read the mount table: %v",
			cmp.Or(err, errors.New("it is empty")))
	}
	at := map[string]*mountinfo.Info{} // the last mount on a path is the visible one
	for _, m := range mounts {
		at[m.Mountpoint] = m
	}
	var p problems
	for _, fs := range listFileSystems(s) {
		m := at[filepath.Clean(fs.Path)]
		for dir := fs.Path; m == nil && fs.Any && dir != "/"; m = at[dir] {
			dir = filepath.Dir(dir)
		}
		switch {
		case m == nil:
			p.addFailure("%s is not mounted", fs.Path)
		case !fs.ReadOnly && (hasOption(m.Options, "ro") || hasOption(m.VFSOptions, "ro")):
			p.addFailure("%s is mounted read-only", fs.Path)
		}
	}
	return p.buildFinding("all file systems are mounted as configured")
}

// fullHysteresis is in percentage points: a full file system stays full until its usage is this
// far below the limit.
const fullHysteresis = 3

// defaultFull is the usage in percent at which a file system counts as full if health.toml sets
// no `full`.
const defaultFull = 98

// full checks the space of each file system with statfs(2). A full file system drains the node
// only if health.toml sets its limit: a user's job could fill a file system that jobs may write
// to, such as /tmp, /home or gojail's scratch, on every node.
func full(ctx context.Context, h *check.Host, s *check.Settings) check.Finding {
	var before []string
	if json.Unmarshal(h.State, &before) != nil {
		before = nil
	}
	f, full := probeFileSystems(ctx, s, func(fs check.FileSystem, p *problems) {
		var st unix.Statfs_t
		if err := unix.Statfs(fs.Path, &st); err != nil {
			p.addFailure("%s does not report its space: %v", fs.Path, err)
			return
		}
		if st.Flags&unix.ST_RDONLY != 0 {
			return // a read-only image is always full
		}
		limit, say := fs.Full, p.addFailure
		if limit == 0 {
			limit, say = defaultFull, p.addWarning
		}
		if slices.Contains(before, fs.Path) {
			limit -= fullHysteresis
		}
		judgeSpace(p, fs.Path, limit, &st, say)
	})
	f.State, _ = json.Marshal(full)
	return f
}

// judgeSpace compares the usage of blocks and inodes with the limit.
func judgeSpace(p *problems, path string, limit float64, st *unix.Statfs_t, say func(format string, args ...any)) {
	for _, what := range []struct {
		name        string
		free, total uint64
	}{{"space", st.Bavail, st.Blocks - st.Bfree + st.Bavail}, {"inodes", st.Ffree, st.Files}} {
		if what.total == 0 || what.free > what.total {
			continue // file systems without a fixed number of inodes report 0
		}
		used := 100 * (1 - float64(what.free)/float64(what.total))
		p.addNote("%s: %.1f%% of %s used", path, used, what.name)
		switch {
		case used >= limit:
			say("%s is full (%s)", path, what.name)
		case used >= limit-3:
			p.addWarning("%s is nearly full (%s)", path, what.name)
		}
	}
}

// writable writes a small file in each file system.
func writable(ctx context.Context, h *check.Host, s *check.Settings) check.Finding {
	f, _ := probeFileSystems(ctx, s, func(fs check.FileSystem, p *problems) {
		err := probeFileSystem(fs, h.Node)
		switch {
		case errors.Is(err, unix.ENOSPC), errors.Is(err, unix.EDQUOT):
			p.addWarning("%s has no room for a file", fs.Path) // fs-full reports that
		case err != nil:
			p.addFailure("%s: %v", fs.Path, err)
		}
	})
	return f
}

// probeFileSystem opens the directory of a file system that is mounted read-only on purpose,
// and writes a scratch file in any other file system.
func probeFileSystem(fs check.FileSystem, node string) error {
	if fs.ReadOnly {
		dir, err := os.Open(fs.Path)
		if err != nil {
			return fmt.Errorf("cannot open the directory: %w", trimPath(err))
		}
		return dir.Close()
	}
	f, remove, err := openScratchFile(fs.Path, node)
	if err != nil {
		return fmt.Errorf("cannot create a file: %w", trimPath(err))
	}
	defer f.Close()
	defer remove()
	if err := writeDirect(f); err != nil {
		return fmt.Errorf("cannot write a file: %w", trimPath(err))
	}
	return nil
}

// writeDirect writes directly to the disk or the server (open(2), O_DIRECT). fsync(2) may have
// to wait for all data that jobs have written (ext4, data=ordered), which can take minutes; it
// is used only on file systems without O_DIRECT.
func writeDirect(f *os.File) error {
	// page-aligned memory
	page, err := unix.Mmap(-1, 0, os.Getpagesize(), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
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

// trimPath returns the error without the path, which has a random part.
func trimPath(err error) error {
	var path *os.PathError
	if errors.As(err, &path) {
		return path.Err
	}
	return err
}

// probeFileSystems calls look for all file systems in parallel and reports those that hang. It
// also returns the paths of those that failed.
func probeFileSystems(ctx context.Context, s *check.Settings, probe func(check.FileSystem, *problems)) (f check.Finding,
	failed []string) {
	ctx, cancel := context.WithTimeout(ctx, storagePatience)
	defer cancel()
	var answers []*deadline.Pending[*problems]
	for _, fs := range listFileSystems(s) {
		answers = append(answers, deadline.Start(func() *problems {
			p := &problems{}
			probe(fs, p)
			return p
		}))
	}
	var all problems
	for i, fs := range listFileSystems(s) {
		before := len(all.fail)
		if p, ok := answers[i].Await(ctx); ok {
			all.addAll(p)
		} else {
			all.addFailure("%s does not answer", fs.Path)
		}
		if len(all.fail) > before {
			failed = append(failed, fs.Path)
		}
	}
	return all.buildFinding("all file systems answer"), failed
}

// hasOption reports whether a comma-separated list of mount options has the named option.
func hasOption(list, name string) bool {
	return slices.Contains(strings.Split(list, ","), name)
}

// listFileSystems returns the configured file systems, or only the root, which may be
// read-only. The default is not in DefaultSettings, since decoding a file over it would leave
// parts of an element.
func listFileSystems(s *check.Settings) []check.FileSystem {
	if len(s.FileSystems) == 0 {
		return []check.FileSystem{{Path: "/", Any: true, ReadOnly: true}}
	}
	return s.FileSystems
}
