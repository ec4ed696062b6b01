// SPDX-License-Identifier: Apache-2.0

// Package node reads what this node has: Slurm's files, GPUs, devices, and a jail's root.
package node

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/gojail/cdi"
	"github.com/gojail/gojail/gojail/config"
	"github.com/gojail/gojail/gojail/contract"
	"github.com/gojail/gojail/internal/oneline"
	"github.com/gojail/gojail/internal/rootpath"
)

// HostFacts holds everything that the plans need to know about a node and a jail's storage.
type HostFacts struct {
	State       string            // state directory
	Image       bool              // the jail's root is an image, which is read-only
	HostTop     []Top             // directories and symlinks in the host's /
	JailTop     []Top             // directories and symlinks in the jail's /
	Exists      map[string]bool   // whether each path of the host that matters exists
	VarTmp      bool              // the host has /var/tmp, and the jail one that is not its /tmp
	LinkTargets map[string]string // targets of the host files that are symlinks into the jail's /run
	Devices     []Device          // devices that the patterns match
	Command     string            // path of the gojail command for jails, beside the plugin; "": none
	CDI         cdi.Edits         // what the jail's CDI devices provide
	JobNodes    []string          // device nodes that a job gets by its allocation
	SlurmDirs   []string          // Slurm's plugin directories
	SlurmFiles  []string          // Slurm's commands and libraries, and the plugins of plugstack.conf
	Libraries   []string          // further libraries that SlurmFiles need and the jail lacks
	Identity    []IdentityFile    // files that tell which machine this is, where both node and jail have them
	RunEntries  []RunEntry        // what the jail's tmpfiles.d creates in /run
	Optional    []string          // the Libraries that slurmstepd does not need: root of a range may install them
	Foreign     []string          // library directories of the node in places that are a jail's data
	Seccomp     *specs.LinuxSeccomp
}

// Top is an entry of a root directory.
type Top struct {
	Name string
	Link string // target of a symlink; "": a directory
}

// ReadHost reads the facts. It accesses the jail's storage, and can hang with it.
func ReadHost(c *config.Config, j *config.Jail, state string) (*HostFacts, error) {
	root, err := OpenJail(j)
	if err != nil {
		return nil, err
	}
	defer unix.Close(root)
	return ReadHostWith(c, j, state, root)
}

// ReadHostWith reads the facts with the open root of the jail.
func ReadHostWith(c *config.Config, j *config.Jail, state string, root int) (*HostFacts, error) {
	if err := CheckRoot(root, j.Root); err != nil {
		return nil, err
	}
	LoadCDI(c)
	facts := &HostFacts{
		State: state, Image: IsImage(root), Exists: map[string]bool{}, Devices: SharedDevices(j, c.GPUs), JobNodes: slices.Concat(JobDevices(j, c.GPUs)...),
	}
	var err error
	if facts.CDI, err = findCDIEdits(j); err != nil {
		return nil, err
	}
	if facts.Seccomp, err = buildProfile(j); err != nil {
		return nil, err
	}
	if facts.HostTop, err = readTop("/"); err != nil {
		return nil, err
	}
	if facts.JailTop, err = readJailTop(j, root); err != nil {
		return nil, err
	}
	facts.VarTmp = rootpath.Exists("/var/tmp") && hasOwnVarTmp(root)

	facts.LinkTargets = readLinkTargets(root, j.Host)
	facts.RunEntries = readRunEntries(root)
	if j.Identity {
		facts.Identity = findIdentity(root)
	}

	facts.Command = FindCommand(c)
	slurm := ReadSlurm(c)
	facts.SlurmDirs = slurm.Dirs
	facts.SlurmFiles = slurm.Files
	for _, library := range slurm.Libraries {
		if !HasLibrary(root, library) {
			facts.Libraries = append(facts.Libraries, library)
		}
	}
	facts.Libraries = append(facts.Libraries, describeMissingPMIx(root, slurm.pmix)...)
	stepd := findClosure(findStepd(c), slurm.Dirs)
	facts.Optional = slices.DeleteFunc(slices.Clone(facts.Libraries), func(path string) bool { return slices.Contains(stepd, path) })
	facts.Foreign = findForeignDirs(ldConf)
	facts.statPaths(slices.Concat(j.Host, c.Slurm.Host, slurm.Dirs,
		[]string{c.Slurm.Conf, c.Slurm.Spool, filepath.Dir(c.Slurm.Munge), state}))
	for _, file := range slurm.Files {
		facts.statPaths([]string{filepath.Dir(file)})
	}
	return facts, nil
}

// statPaths records whether each path exists.
func (f *HostFacts) statPaths(paths []string) {
	for _, path := range paths {
		f.Exists[path] = rootpath.Exists(path)
	}
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

// readTopUpTo reads at most that many entries, and reports whether there are more.
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
				tops = append(tops, Top{e.Name(), target})
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
		return tops, err
	}
	if j.Data == nil {
		return nil, &CrowdedError{j.Root}
	}
	tops = nil
	for _, name := range j.Data {
		var st unix.Stat_t
		name = config.FirstName(name)
		if unix.Fstatat(root, name, &st, unix.AT_SYMLINK_NOFOLLOW) == nil && st.Mode&unix.S_IFMT == unix.S_IFDIR {
			tops = append(tops, Top{Name: name})
		}
	}
	return tops, nil
}

// CrowdedError reports that a jail's root has too many entries to be read.
type CrowdedError struct{ root string }

func (e *CrowdedError) Error() string {
	return fmt.Sprintf("jail root %s has more than %d entries, too many to search for data directories; "+
		`remove entries, or name the data directories in gojail.toml: data = ["/home"]`, e.root, TopMax)
}

// readLinkTargets returns the targets of symlinks such as /etc/resolv.conf ->
// ../run/systemd/resolve/stub-resolv.conf. The jail's /run is a tmpfs, in which the target can be created
// while the symlink dangles.
func readLinkTargets(root int, files []string) map[string]string {
	leads := map[string]string{}
	for _, file := range files {
		dir, err := rootpath.OpenBeneath(root, filepath.Dir(file), rootpath.InRoot)
		if err != nil {
			continue
		}
		buf := make([]byte, contract.PathMax)
		n, err := unix.Readlinkat(dir, filepath.Base(file), buf)
		unix.Close(dir)
		if err != nil {
			continue
		}
		to := string(buf[:n])
		if !filepath.IsAbs(to) {
			to = filepath.Join(filepath.Dir(file), to)
		}
		to = strings.Replace(filepath.Clean(to), "/var/run/", "/run/", 1)
		if strings.HasPrefix(to, "/run/") && rootpath.CheckClean(to) == nil {
			leads[file] = to
		}
	}
	return leads
}

// hasOwnVarTmp reports whether a jail has a /var/tmp that is not its /tmp, of which each job has its own.
func hasOwnVarTmp(root int) bool {
	st, err := StatIn(root, "/var/tmp")
	if err != nil || st.Mode&unix.S_IFMT != unix.S_IFDIR {
		return false
	}
	tmp, err := StatIn(root, "/tmp")
	return err != nil || tmp.Dev != st.Dev || tmp.Ino != st.Ino
}

// HasLibrary reports whether a jail has a library, at the host's path or in the default directories. An
// empty file is only a mount target that `gojail init` created.
func HasLibrary(root int, path string) bool {
	base := filepath.Base(path)
	for _, dir := range []string{filepath.Dir(path), "/usr/lib64", "/lib64", "/usr/lib", "/lib"} {
		if st, err := StatIn(root, filepath.Join(dir, base)); err == nil && st.Size > 0 {
			return true
		}
	}
	return false
}

// StatIn returns the status of a path in a jail's root.
func StatIn(root int, path string) (st unix.Stat_t, err error) {
	fd, err := rootpath.OpenBeneath(root, path, rootpath.InRoot)
	if err != nil {
		return st, err
	}
	defer unix.Close(fd)
	return st, unix.Fstat(fd, &st)
}
