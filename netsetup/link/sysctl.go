// SPDX-License-Identifier: Apache-2.0

package link

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/gojail/gojail/netsetup/netns"
)

// Sysctl is a file below /proc/sys/net and its value: {"ipv4/conf/net1/arp_ignore", "1"}.
type Sysctl struct{ Name, Value string }

func (s Sysctl) String() string { return "net/" + s.Name + "=" + s.Value }

// SetSysctls sets kernel variables of the namespace in this order and reads each back, all
// on one thread (a file below /proc/sys/net belongs to the opener's namespace). proc is the
// mount point of procfs. It returns the previous values of the variables that it changed, in
// the order for a SetSysctls that undoes the changes, also after an error. It fails with
// fs.ErrNotExist if the kernel does not have a variable, such as all of IPv6 in a kernel
// without IPv6.
func (n *Namespace) SetSysctls(proc string, set []Sysctl) (previous []Sysctl, err error) {
	err = netns.RunInside(n.fd, func() error {
		for _, s := range set {
			old, err := s.set(proc)
			if old != nil {
				previous = append([]Sysctl{*old}, previous...)
			}
			if err != nil {
				return fmt.Errorf("set %s: %w", s, err)
			}
		}
		return nil
	})
	return previous, err
}

// ReadSysctl returns a kernel variable of the namespace.
func (n *Namespace) ReadSysctl(proc, name string) (value string, err error) {
	err = netns.RunInside(n.fd, func() error {
		file, err := Sysctl{name, ""}.open(proc, os.O_RDONLY)
		if err != nil {
			return err
		}
		defer file.Close()
		value, err = readValue(file)
		return err
	})
	if err != nil {
		return "", fmt.Errorf("read net/%s: %w", name, err)
	}
	return value, nil
}

func (s Sysctl) open(proc string, flags int) (*os.File, error) {
	if !filepath.IsLocal(s.Name) {
		return nil, errors.New("not a name below /proc/sys/net")
	}
	file, err := os.OpenFile(filepath.Join(proc, "sys/net", s.Name), flags, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w; no such link in the namespace, or the kernel lacks the feature", err)
	}
	return file, err
}

// set writes the variable and returns its previous value, or nil if nothing changed.
func (s Sysctl) set(proc string) (*Sysctl, error) {
	file, err := s.open(proc, os.O_RDWR)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	before, err := readValue(file)
	if err != nil || before == s.Value {
		return nil, err
	}
	if _, err := file.WriteAt([]byte(s.Value), 0); err != nil {
		return nil, err
	}
	old := &Sysctl{s.Name, before}
	now, err := readValue(file)
	if err == nil && now != s.Value {
		err = fmt.Errorf("the kernel set it to %q", now)
	}
	return old, err
}

func readValue(file *os.File) (string, error) {
	var buffer [256]byte
	// A sysctl can be read at offset 0 only, in one call.
	length, err := file.ReadAt(buffer[:], 0)
	if length == 0 {
		return "", err
	}
	return strings.TrimSpace(string(buffer[:length])), nil
}
