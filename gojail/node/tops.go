// SPDX-License-Identifier: Apache-2.0

package node

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/gojail/config"
	"github.com/gojail/gojail/internal/oneline"
	"github.com/gojail/gojail/internal/rootpath"
)

// Top is an entry of a root directory.
type Top struct {
	Name string
	Link string // target of a symlink; "": a directory
	Real string // path without symlinks of the directory to which a symlink of a jail leads in the jail; "": none
}

// readTop returns the directories and symlinks of a root directory, sorted by name.
func readTop(dir string) ([]Top, error) {
	tops, crowded, err := readTopUpTo(dir, TopMax)
	if err == nil && crowded {
		err = fmt.Errorf("%s has more than %d entries", dir, TopMax)
	}
	return tops, err
}

// TopMax is the limit of entries in a root directory, more than any distribution has. A user who owns a
// jail's tree may create any number, and each launch would read them all.
const TopMax = 4096

// readTopUpTo reads at most so many entries, and reports whether there are more.
func readTopUpTo(dir string, most int) (tops []Top, crowded bool, err error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, false, fmt.Errorf("cannot read %s: %w", dir, oneline.Cause(err))
	}
	defer f.Close()
	entries, err := f.ReadDir(most + 1)
	if err != nil && err != io.EOF {
		return nil, false, fmt.Errorf("cannot read %s: %w", dir, oneline.Cause(err))
	}
	crowded = len(entries) > most
	for _, e := range entries[:min(len(entries), most)] {
		switch {
		case e.IsDir():
			tops = append(tops, Top{Name: e.Name()})
		case e.Type()&os.ModeSymlink != 0:
			if target, err := os.Readlink(filepath.Join(dir, e.Name())); err == nil {
				tops = append(tops, Top{Name: e.Name(), Link: target})
			}
		}
	}
	slices.SortFunc(tops, func(a, b Top) int { return strings.Compare(a.Name, b.Name) })
	return tops, crowded, nil
}

// readJailTop returns the directories and symlinks of a jail's root. In a root with too many entries it
// reads only the data directories that the configuration names.
func readJailTop(j *config.Jail, root int) ([]Top, error) {
	tops, crowded, err := readTopUpTo(fmt.Sprintf("/proc/self/fd/%d", root), TopMax)
	if err != nil || !crowded {
		return findReal(tops, root), err
	}
	if j.Data == nil {
		return nil, &CrowdedError{j.Root}
	}
	tops = nil
	for _, name := range j.Data {
		var st unix.Stat_t
		name = config.FirstName(name)
		if unix.Fstatat(root, name, &st, unix.AT_SYMLINK_NOFOLLOW) != nil {
			continue
		}
		switch st.Mode & unix.S_IFMT {
		case unix.S_IFDIR:
			tops = append(tops, Top{Name: name})
		case unix.S_IFLNK:
			tops = append(tops, Top{Name: name, Link: rootpath.ReadLink(root, "/"+name)})
		}
	}
	return findReal(tops, root), nil
}

// CrowdedError is the error for a root of a jail that has too many entries to be read.
type CrowdedError struct{ root string }

func (e *CrowdedError) Error() string {
	return fmt.Sprintf("jail root %s has more than %d entries, too many to search for data directories; "+
		`remove entries, or name the data directories in gojail.toml: data = ["/home"]`, e.root, TopMax)
}

// findReal sets Real of the symlinks of a jail's root.
func findReal(tops []Top, root int) []Top {
	for i := range tops {
		if tops[i].Link != "" {
			tops[i].Real = resolveDirectory(root, "/"+tops[i].Name)
		}
	}
	return tops
}

// resolveDirectory returns the path without symlinks of a directory below an open root, or "" if there is none. Links
// are followed as a process with that root follows them.
func resolveDirectory(root int, path string) string {
	fd, err := rootpath.OpenInRoot(root, path, unix.O_PATH|unix.O_DIRECTORY)
	if err != nil {
		return ""
	}
	defer unix.Close(fd)
	top, err := rootpath.PathOf(root) // which the caller's own root need not contain
	if err != nil {
		return ""
	}
	real, err := rootpath.PathOf(fd)
	if top = strings.TrimSuffix(top, "/"); err != nil || !strings.HasPrefix(real, top+"/") || real == "/" {
		return "" // it leads to the root itself, or was removed
	}
	return strings.TrimPrefix(real, top)
}

// Physical is a directory of the host under the path that getcwd(3) returns there. sbatch passes that path on as the
// working directory of a job: /export/home/alice, for example, if /home is a symlink to /export/home.
type Physical struct {
	Name   string // name of the symlink in the host's /, "home"
	Path   string // path to which it leads on the host
	InJail string // path to which Path leads in the jail, without symlinks; "": the jail has no such directory
	IsDir  bool   // Path is a directory of the host's /var or /opt, which a stage shows
}

// findPhysical finds the directories to which the symlinks in the host's / lead. It follows only these links, by their
// text: the storage behind them may be silent.
func findPhysical(tops []Top, root int) (list []Physical) {
	links := map[string]string{}
	for _, top := range tops {
		links[top.Name] = top.Link
	}
	for _, top := range tops {
		if top.Link == "" || slices.Contains(config.SystemDirs, top.Name) || top.Name == "tmp" {
			continue
		}
		path := "/" + top.Name
		for range len(tops) {
			link := links[config.FirstName(path)]
			if link == "" {
				break
			}
			path = filepath.Join("/", link, strings.TrimPrefix(path, "/"+config.FirstName(path)))
		}
		p := Physical{Name: top.Name, Path: path, InJail: resolveDirectory(root, path)}
		p.IsDir = p.InJail != "" && (config.Under(path, "/var") || config.Under(path, "/opt")) && isRealDir(path)
		list = append(list, p)
	}
	return list
}

// isRealDir reports whether a path of the host leads to a directory, and through no symlink.
func isRealDir(path string) bool {
	fd, err := rootpath.Open(unix.AT_FDCWD, path, unix.O_PATH|unix.O_DIRECTORY, unix.RESOLVE_NO_SYMLINKS)
	if err != nil {
		return false
	}
	unix.Close(fd)
	return true
}

// VarTmp describes /var/tmp of the host and of a jail.
type VarTmp struct {
	InJail string // path to which it leads in the jail, without symlinks; "": the jail has none
	IsDir  bool   // whether the host has a directory
	IsLink bool   // whether the host has a symlink that leads elsewhere than the jail's
}

// findVarTmp describes /var/tmp of a host and of a jail.
func findVarTmp(host string, root int) VarTmp {
	v := VarTmp{InJail: resolveDirectory(root, "/var/tmp")}
	path := filepath.Join(host, "var/tmp")
	if v.IsDir = isRealDir(path); v.IsDir {
		return v
	}
	if to, err := os.Readlink(path); err == nil {
		if !filepath.IsAbs(to) {
			to = filepath.Join("/var", to)
		}
		v.IsLink = v.InJail == "" || v.InJail != resolveDirectory(root, to)
	}
	return v
}
