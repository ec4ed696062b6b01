// SPDX-License-Identifier: Apache-2.0

package gojail

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
)

// HostFacts is all that the plans need to know about a node and a jail's storage.
type HostFacts struct {
	State      string            // state directory
	HostTop    []Top             // directories and symlinks in / of the host
	JailTop    []Top             // the same of the jail
	Exists     map[string]bool   // those of the host's paths that matter
	VarTmp     bool              // host and jail both have /var/tmp
	Leads      map[string]string // host files that are symlinks into the jail's /run: where they lead
	Devices    []Device          // what the globs found
	Command    string            // gojail for jails, beside the plugin; "": there is none
	CDI        cdi.Edits         // what the jail's CDI devices bring
	Given      []string          // device nodes that each job gets by its allocation
	SlurmDirs  []string          // Slurm's plugin directories
	SlurmFiles []string          // Slurm's commands and libraries, the plugins of plugstack.conf
	Libraries  []string          // others that these need and the jail lacks
	Optional   []string          // of those, what slurmstepd does without: root of a range may install it
	Foreign    []string          // directories of libraries that the node has in places that are a jail's data
	Seccomp    *specs.LinuxSeccomp
}

// Top is an entry of a root directory.
type Top struct {
	Name string
	Link string // target of a symlink; empty: a directory
}

// ReadHost reads the facts. It touches the jail's storage and can hang with it.
func ReadHost(c *Config, j *Jail, state string) (*HostFacts, error) {
	if err := checkRoot(j.Root); err != nil {
		return nil, err
	}
	c.withCDI()
	facts := &HostFacts{
		State: state, Exists: map[string]bool{}, Devices: j.everybodys(c.GPUs), Given: slices.Concat(j.perJob(c.GPUs)...),
	}
	var err error
	if facts.CDI, err = j.cdiEdits(); err != nil {
		return nil, err
	}
	if facts.Seccomp, err = j.profile(); err != nil {
		return nil, err
	}
	if facts.HostTop, err = readTop("/"); err != nil {
		return nil, err
	}
	if facts.JailTop, err = readJailTop(j, j.Root); err != nil {
		return nil, err
	}
	root, err := openJail(j)
	if err != nil {
		return nil, err
	}
	defer unix.Close(root)
	facts.VarTmp = exists("/var/tmp") && hasDirectory(root, "/var/tmp")

	facts.Leads = readLeads(root, j.Host)

	facts.Command = findCommand(c)
	slurm := readSlurm(c)
	facts.SlurmDirs = slurm.dirs
	facts.SlurmFiles = slurm.files
	for _, library := range slurm.libraries {
		if !hasLibrary(root, library) {
			facts.Libraries = append(facts.Libraries, library)
		}
	}
	facts.Libraries = append(facts.Libraries, missingPMIx(root, slurm.pmix)...)
	stepd := closure(findStepd(c), slurm.dirs)
	facts.Optional = slices.DeleteFunc(slices.Clone(facts.Libraries), func(path string) bool { return slices.Contains(stepd, path) })
	facts.Foreign = foreignDirs(ldConf)
	facts.look(slices.Concat(j.Host, c.Slurm.Host, slurm.dirs,
		[]string{c.Slurm.Conf, c.Slurm.Spool, filepath.Dir(c.Slurm.Munge), state}))
	for _, file := range slurm.files {
		facts.look([]string{filepath.Dir(file)})
	}
	return facts, nil
}

func (f *HostFacts) look(paths []string) {
	for _, path := range paths {
		f.Exists[path] = exists(path)
	}
}

// readTop lists the directories and symlinks of a root directory, sorted by name.
func readTop(dir string) ([]Top, error) {
	tops, crowded, err := readTopUpTo(dir, topMax)
	if err == nil && crowded {
		err = fmt.Errorf("%s has more than %d entries", dir, topMax)
	}
	return tops, err
}

// topMax is more than the root of any distribution has. A user to whom a jail's tree belongs
// may make any number, and each launch would read them all.
const topMax = 4096

// readTopUpTo reads no more than most entries, and reports whether there are more.
func readTopUpTo(dir string, most int) (tops []Top, crowded bool, err error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, false, fmt.Errorf("cannot read %s: %w", dir, cause(err))
	}
	defer f.Close()
	entries, err := f.ReadDir(most + 1)
	if err != nil && err != io.EOF {
		return nil, false, fmt.Errorf("cannot read %s: %w", dir, cause(err))
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

// readJailTop lists those of a jail's root. Where the site names the jail's data directories,
// nothing else is looked for in a root with too many entries.
func readJailTop(j *Jail, root string) ([]Top, error) {
	tops, crowded, err := readTopUpTo(root, topMax)
	if err != nil || !crowded {
		return tops, err
	}
	if j.Data == nil {
		return nil, &crowdedError{j.Root}
	}
	tops = nil
	for _, name := range j.Data {
		var st unix.Stat_t
		name = firstName(name)
		if unix.Lstat(filepath.Join(root, name), &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFDIR {
			tops = append(tops, Top{Name: name})
		}
	}
	return tops, nil
}

// crowdedError is that of a root that is not read whole.
type crowdedError struct{ root string }

func (e *crowdedError) Error() string {
	return fmt.Sprintf("jail root %s has more than %d entries, too many to look for data directories among them; "+
		`remove what does not belong there, or name them in gojail.toml: data = ["/home"]`, e.root, topMax)
}

// readLeads follows symlinks such as /etc/resolv.conf -> ../run/systemd/resolve/
// stub-resolv.conf. The jail's /run is a tmpfs, so that the target can be made
// there, while the symlink itself dangles.
func readLeads(root int, files []string) map[string]string {
	leads := map[string]string{}
	for _, file := range files {
		dir, err := openBeneath(root, filepath.Dir(file), inJail)
		if err != nil {
			continue
		}
		buf := make([]byte, pathMax)
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
		if strings.HasPrefix(to, "/run/") && cleanPath(to) == nil {
			leads[file] = to
		}
	}
	return leads
}

// openJail opens a jail's root as the place that paths are resolved in.
func openJail(j *Jail) (int, error) {
	fd, err := unix.Open(j.Root, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, fmt.Errorf("jail root %s cannot be opened: %w", j.Root, err)
	}
	return fd, nil
}

const inJail = unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_MAGICLINKS

func hasDirectory(root int, path string) bool {
	st, err := statIn(root, path)
	return err == nil && st.Mode&unix.S_IFMT == unix.S_IFDIR
}

// hasLibrary looks for a library in the jail, where the host has it and in the
// usual places. An empty file is only a mount target that `gojail init` made.
func hasLibrary(root int, path string) bool {
	base := filepath.Base(path)
	for _, dir := range []string{filepath.Dir(path), "/usr/lib64", "/lib64", "/usr/lib", "/lib"} {
		if st, err := statIn(root, filepath.Join(dir, base)); err == nil && st.Size > 0 {
			return true
		}
	}
	return false
}

func statIn(root int, path string) (st unix.Stat_t, err error) {
	fd, err := openBeneath(root, path, inJail)
	if err != nil {
		return st, err
	}
	defer unix.Close(fd)
	return st, unix.Fstat(fd, &st)
}
