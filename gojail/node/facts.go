// SPDX-License-Identifier: Apache-2.0

// Package node reads what this node has: Slurm's files, GPUs, devices, and a jail's root.
package node

import (
	"path/filepath"
	"slices"

	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/gojail/cdi"
	"github.com/gojail/gojail/gojail/config"
	"github.com/gojail/gojail/internal/rootpath"
)

// HostFacts holds everything that the plans need to know about a node and a jail's storage.
type HostFacts struct {
	State      string          // state directory
	Image      bool            // the jail's root is an image, which is read-only
	HostTop    []Top           // directories and symlinks in the host's /
	JailTop    []Top           // directories and symlinks in the jail's /
	Exists     map[string]bool // whether each path of the host that matters exists
	Physical   []Physical      // directories of the host to which symlinks in its / lead
	VarTmp     VarTmp          // /var/tmp of both
	Devices    []Device        // devices that the patterns match
	Command    string          // path of the gojail command for jails, beside the plugin; "": none
	CDI        cdi.Edits       // edits of the jail's CDI devices
	JobNodes   []string        // device nodes that a job gets by its allocation
	SlurmDirs  []string        // Slurm's plugin directories
	SlurmFiles []string        // Slurm's commands and libraries, and the plugins of plugstack.conf
	Libraries  []string        // further libraries that SlurmFiles need and the jail does not have
	Identity   []IdentityFile  // files that identify the machine and that both node and jail have
	RunEntries []RunEntry      // entries that the jail's tmpfiles.d creates in /run
	Optional   []string        // the Libraries that slurmstepd does not need: root of a range may install them
	Foreign    []string        // library directories of the node at paths where a jail has data
	Seccomp    *specs.LinuxSeccomp
}

// ReadHost reads the facts. It accesses the jail's storage, and can hang with it.
func ReadHost(c *config.Config, j *config.Jail, state string) (*HostFacts, error) {
	root, err := OpenJail(j)
	if err != nil {
		return nil, err
	}
	defer unix.Close(root)
	return ReadHostWith(c, ReadHardware(c), j, state, root)
}

// ReadHostWith reads the facts with the open root of the jail.
func ReadHostWith(c *config.Config, h *Hardware, j *config.Jail, state string, root int) (*HostFacts, error) {
	if err := CheckRoot(root, j.Root); err != nil {
		return nil, err
	}
	facts := &HostFacts{
		State: state, Image: IsImage(root), Exists: map[string]bool{}, Devices: h.SharedDevices(j),
		JobNodes: slices.Concat(h.JobDevices(j)...),
	}
	var err error
	if facts.CDI, err = h.CDIEdits(j); err != nil {
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
	facts.Physical = findPhysical(facts.HostTop, root)
	facts.VarTmp = findVarTmp("/", root)
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
	facts.Libraries = append(facts.Libraries, findMissingPMIx(root, slurm.pmix)...)
	stepd := findClosure(findStepd(c), slurm.Dirs)
	facts.Optional = slices.DeleteFunc(slices.Clone(facts.Libraries),
		func(path string) bool { return slices.Contains(stepd, path) })
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
