// SPDX-License-Identifier: Apache-2.0

package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/internal/oneline"
	"github.com/gojail/gojail/internal/statefile"
)

// nodesDir is the directory of the nodes' leases. It is not a valid name of a jail.
const nodesDir = ".nodes"

// Names and limits of the leases. They are parsed as hostile input: if the storage squashes root, the directory belongs
// to the user to which root is squashed.
const (
	leaseSuffix  = ".json"
	leasePattern = ".new-*" // name of a lease while it is written
	leaseMax     = 1 << 20  // bytes
	leasesMax    = 100_000
	listMax      = 10_000 // elements of a list in a lease
	wordMax      = 512    // bytes of a word in a lease
)

// Lease lists the versions that a node uses.
type Lease struct {
	Node    string `json:"node"`
	Cluster string `json:"cluster,omitempty"`
	// time at which the node began to make the lease: later uses are missing
	Asked time.Time `json:"asked"`
	Uses  []Use     `json:"uses"` // sorted
	// name in versions/ of the version that the node sees as the current one, by jail
	Current map[string]string `json:"current,omitempty"`
	Unknown []string          `json:"unknown,omitempty"` // uses of unknown versions, each with the reason
}

// Use is a use of a version on a node.
type Use struct {
	Version string `json:"version"`
	By      string `json:"by"` // such as "job 17"
}

func (l *Lease) file() string {
	if l.Cluster == "" {
		return l.Node + leaseSuffix
	}
	return l.Node + "@" + l.Cluster + leaseSuffix
}

// WriteLease replaces the lease of a node. Writers of the same lease must hold a lock.
func (s *Store) WriteLease(l *Lease) (err error) {
	if err := l.check(); err != nil {
		return fmt.Errorf("cannot write a lease: %w", err)
	}
	text, err := statefile.Encode(l)
	if err != nil {
		return err
	}
	dir := filepath.Join(s.dir, nodesDir)
	if err := makeDirectory(dir); err != nil {
		return fmt.Errorf("cannot create %s: %w", dir, err)
	}
	// An unpredictable name: somebody other than root may have created a file with a known one.
	file, err := os.CreateTemp(dir, leasePattern)
	if err != nil {
		return fmt.Errorf("cannot write the lease of this node in %s: %w", dir, oneline.Cause(err))
	}
	_, err = file.Write(text)
	err = errors.Join(err, file.Chmod(0o644))
	if err = errors.Join(err, file.Close()); err == nil {
		err = os.Rename(file.Name(), filepath.Join(dir, l.file()))
	}
	if err != nil {
		os.Remove(file.Name())
		return fmt.Errorf("cannot write the lease of this node in %s: %w", dir, oneline.Cause(err))
	}
	return nil
}

// Leases returns the leases of all nodes, and a line about each that cannot be read.
func (s *Store) Leases() (leases []*Lease, damaged []string, err error) {
	dir := filepath.Join(s.dir, nodesDir)
	switch st, err := statServer(dir); {
	case err == unix.ENOENT:
		return nil, nil, nil
	case err != nil:
		return nil, nil, fmt.Errorf("%s: %w", dir, err)
	case st.Mode&unix.S_IFMT != unix.S_IFDIR || st.Mode&0o022 != 0:
		return nil, nil, fmt.Errorf("%s is not a directory that only its owner may write to; make it one: chmod 755 %s",
			dir, dir)
	}
	open, err := os.Open(dir)
	if err != nil {
		return nil, nil, fmt.Errorf("cannot read %s: %w", dir, oneline.Cause(err))
	}
	defer open.Close()
	names, err := open.Readdirnames(leasesMax + 1)
	if err != nil && err != io.EOF {
		return nil, nil, fmt.Errorf("cannot read %s: %w", dir, oneline.Errno(err))
	}
	if len(names) > leasesMax {
		return nil, nil, fmt.Errorf("%s has more than %d files", dir, leasesMax)
	}
	for _, name := range names {
		if !strings.HasSuffix(name, leaseSuffix) {
			continue
		}
		l, err := readLease(filepath.Join(dir, name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			damaged = append(damaged, fmt.Sprintf("%s: %v", filepath.Join(dir, name), oneline.Cause(err)))
			continue
		}
		leases = append(leases, l)
	}
	return leases, damaged, nil
}

func readLease(path string) (*Lease, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("is not a regular file")
	}
	text, err := io.ReadAll(io.LimitReader(file, leaseMax+1))
	if err != nil {
		return nil, err
	}
	return parseLease(filepath.Base(path), text)
}

// parseLease parses the lease in a file of that name.
func parseLease(name string, text []byte) (*Lease, error) {
	if len(text) > leaseMax {
		return nil, fmt.Errorf("is longer than %d bytes", leaseMax)
	}
	l := &Lease{}
	if err := json.Unmarshal(text, l); err != nil {
		return nil, fmt.Errorf("is damaged: %w", err)
	}
	if err := l.check(); err != nil {
		return nil, fmt.Errorf("is damaged: %w", err)
	}
	if l.file() != name {
		return nil, fmt.Errorf("is damaged: it is of node %q, cluster %q", l.Node, l.Cluster)
	}
	return l, nil
}

// check fails if a lease has contents that no node writes.
func (l *Lease) check() error {
	if checkName(l.Node) != nil || l.Cluster != "" && checkName(l.Cluster) != nil {
		return fmt.Errorf("invalid name of a node: %q, cluster %q", l.Node, l.Cluster)
	}
	if len(l.Uses) > listMax || len(l.Current) > listMax || len(l.Unknown) > listMax {
		return fmt.Errorf("a list has more than %d elements", listMax)
	}
	words := append([]string{}, l.Unknown...)
	for _, u := range l.Uses {
		words = append(words, u.By)
		if checkName(u.Version) != nil {
			return fmt.Errorf("invalid version %q", u.Version)
		}
	}
	for jail, file := range l.Current {
		if checkName(jail) != nil || checkName(file) != nil {
			return fmt.Errorf("invalid version %q of jail %q", file, jail)
		}
	}
	for _, word := range words {
		if len(word) > wordMax || !utf8.ValidString(word) {
			return fmt.Errorf("invalid text %.40q", word)
		}
	}
	return nil
}

// Tidy removes the leases of nodes that are gone, unless a node has written its lease since the survey, and unfinished
// leases that are older than expiry.
func (s *Store) Tidy(u *Survey, expiry time.Duration) (err error) {
	dir := filepath.Join(s.dir, nodesDir)
	remove := func(name string) {
		if e := os.Remove(filepath.Join(dir, name)); e != nil && !errors.Is(e, fs.ErrNotExist) {
			err = oneline.Both(err, e)
		}
	}
	for _, l := range u.gone {
		if now, e := readLease(filepath.Join(dir, l.file())); e == nil && now.Asked.Equal(l.Asked) {
			remove(l.file())
		}
	}
	entries, readErr := os.ReadDir(dir)
	if readErr != nil && !errors.Is(readErr, fs.ErrNotExist) {
		return oneline.Both(err, fmt.Errorf("cannot read %s: %w", dir, oneline.Cause(readErr)))
	}
	for _, e := range entries {
		info, infoErr := e.Info()
		if infoErr == nil && strings.HasPrefix(e.Name(), strings.TrimSuffix(leasePattern, "*")) &&
			time.Since(info.ModTime()) > expiry {
			remove(e.Name())
		}
	}
	return err
}
