// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"

	specs "github.com/opencontainers/runtime-spec/specs-go"

	"github.com/gojail/gojail/gojail/config"
	"github.com/gojail/gojail/gojail/contract"
	"github.com/gojail/gojail/gojail/node"
)

// Kinds of mounts that each sandbox adds. The values are words of the site file (docs/state.md).
const (
	mountOver    = "over"     // a new file system over the template's; mounts below that are moved to it
	mountIn      = "in"       // a new file system on a directory of the template, or on one of a mount over that
	mountMade    = "in,mkdir" // as mountIn, on a directory that is created for it
	mountAccount = "account"  // the node's users or groups, followed by the jail's own
	// one for each job: a new file system, the job's directory, or the mount of the job's other sandbox
	mountJob = "job"
	// only with a batch script: a new file system on the spool directory, then the script's directory in it
	mountScript = "script"
	mountUpper  = "upper" // layer with a job's changes to the root, in memory or below scratch; users do not see it
	mountRoot   = "root"  // an overlay of the template's root and those changes, as the sandbox's root
	mountMunge  = "munge" // munge's socket, if munged runs; not mounted with --jail-root=range
)

// OwnMount is a mount that each sandbox adds to its jail's template.
type OwnMount struct {
	How string
	Net bool // only for a job with its own network
	specs.Mount
}

// OwnMounts returns the mounts of each sandbox of a jail, in order. The site file carries them to the processes that
// build sandboxes (spank/launcher/assemble.c), which decide only what depends on the step.
func OwnMounts(c *config.Config, h *node.Hardware, j *config.Jail) []OwnMount {
	list := append(planWritable(j), []OwnMount{
		{mountOver, true, sysMount},
		{mountOver, false, Tmpfs("/run", "mode=755", "size=64m", "nr_inodes=16k", "nosuid", "nodev")},
	}...)
	add := func(how string, mounts ...specs.Mount) {
		for _, m := range mounts {
			list = append(list, OwnMount{How: how, Mount: m})
		}
	}
	for _, path := range accountFiles {
		if slices.Contains(j.Host, path) {
			add(mountAccount, Bind(path, "bind", "ro", "nosuid", "nodev", "noexec"))
		}
	}
	if slices.Contains(j.Isolation.Namespaces, "pid") {
		add(mountOver, procMount(j))
	}
	if h.JobDevices(j) != nil {
		add(mountOver, Tmpfs("/dev", "mode=755", "size=1m", "nosuid", "noexec"))
	}
	if j.Isolation.Cgroups == config.CgroupsJob {
		add(mountIn, cgroupMount(j))
	}
	list = append(list, OwnMount{mountMade, true,
		Tmpfs("/dev/infiniband", "mode=755", "size=64k", "nosuid", "noexec")})
	add(mountIn, ptsMount)
	if slices.Contains(j.Isolation.Namespaces, "ipc") {
		add(mountIn, mqueueMount)
	}
	tmp := Bind("/tmp", "bind", "nosuid", "nodev")
	if j.Tmp == config.TmpTmpfs {
		tmp = Tmpfs("/tmp", tmpfsOptions(j.TmpSize)...)
	}
	add(mountJob, tmp, Tmpfs("/dev/shm", tmpfsOptions(j.ShmSize)...))
	add(mountScript, Tmpfs(c.Slurm.Spool, "mode=755", "size=65536", "nosuid", "nodev"),
		Bind(c.Slurm.Spool, "bind", "ro", "nosuid", "nodev"))
	if j.Slurm && needsMungeMount(c) {
		add(mountMunge, Bind(c.Slurm.Munge, mungeOptions...))
	}
	return list
}

// Stat returns the status of a path of the node, as os.Stat does. It is an argument, because a plan is a function of
// its arguments.
type Stat func(path string) (fs.FileInfo, error)

func (s Stat) exists(path string) bool {
	_, err := s(path)
	return err == nil
}

// JobMounts returns the own mounts of one job's sandbox with the job's paths, but without the mount of its root. net
// reports whether the job has its own network.
func JobMounts(c *config.Config, h *node.Hardware, j *config.Jail, job string, net bool, stat Stat) []specs.Mount {
	var mounts []specs.Mount
	script := scriptDir(c, job, stat)
	for _, m := range OwnMounts(c, h, j) {
		switch {
		case m.Destination == "/", m.Net && !net, m.How == mountScript && script == "", m.How == mountAccount &&
			!stat.exists(m.Destination):
			continue
		case m.How == mountScript && m.Type == "bind":
			m.Destination, m.Source = script, script
		case m.How == mountJob && m.Type == "bind":
			m.Source = filepath.Join(c.Scratch, contract.JobsDir, job, "tmp")
		}
		mounts = append(mounts, m.Mount)
	}
	return mounts
}

// scriptDir returns the directory of a job's batch script, or "" if there is none.
func scriptDir(c *config.Config, job string, stat Stat) string {
	number, err := config.ParseID(job)
	if err != nil {
		return ""
	}
	// The names of Slurm's directories have at least five digits.
	dir := filepath.Join(c.Slurm.Spool, fmt.Sprintf("job%05d", number))
	if !stat.exists(dir) {
		return ""
	}
	return dir
}

func tmpfsOptions(bytes int64) []string {
	options := []string{"mode=1777", "nosuid", "nodev"}
	if bytes > 0 {
		options = append(options, fmt.Sprintf("size=%d", bytes))
	}
	return options
}

// UserMountSpecs converts --jail-mount to the terms of the OCI runtime specification.
func UserMountSpecs(list []config.UserMount) []specs.Mount {
	var mounts []specs.Mount
	for _, u := range list {
		m := Bind(u.Destination, "rbind", "nosuid", "nodev")
		m.Source = u.Source
		if u.Readonly {
			m.Options = append(m.Options, "ro")
		}
		mounts = append(mounts, m)
	}
	return mounts
}
