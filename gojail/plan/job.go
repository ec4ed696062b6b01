// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	specs "github.com/opencontainers/runtime-spec/specs-go"

	"github.com/gojail/gojail/gojail/config"
	"github.com/gojail/gojail/gojail/contract"
	"github.com/gojail/gojail/internal/rootpath"
)

// JobMounts are the mounts that each sandbox adds to its jail's template. They
// are made in C when a sandbox is built (spank/); here they are for people, and
// for finding out which mount targets a jail needs.
func JobMounts(c *config.Config, j *config.Jail, job string) []specs.Mount {
	tmp := specs.Mount{
		Destination: "/tmp", Type: "bind", Source: filepath.Join(c.Scratch, contract.JobsDir, job, "tmp"),
		Options: []string{"bind", "nosuid", "nodev"},
	}
	if j.Tmp == config.TmpTmpfs {
		tmp = Tmpfs("/tmp", sized(j.TmpSize)...)
	}
	run := Tmpfs("/run", append(strings.Split(contract.RunOptions, ","), "nosuid", "nodev")...)
	mounts := append(kernelOwn(j), run, tmp, Tmpfs("/dev/shm", sized(j.ShmSize)...))
	if number, err := config.ParseID(job); err == nil { // Slurm's name: five digits at least
		dir := filepath.Join(c.Slurm.Spool, fmt.Sprintf("job%05d", number))
		if rootpath.Exists(dir) { // of a batch job
			mounts = append(mounts, Tmpfs(c.Slurm.Spool, "mode=755", "size=65536", "nosuid", "nodev"),
				Bind(dir, "bind", "ro", "nosuid", "nodev"))
		}
	}
	for _, path := range j.Host {
		if slices.Contains(accountFiles, path) && rootpath.Exists(path) {
			mounts = append(mounts, Bind(path, "bind", "ro", "nosuid", "nodev", "noexec"))
		}
	}
	if j.Slurm && BringsMunge(c) {
		mounts = append(mounts, Bind(c.Slurm.Munge, mungeOptions...))
	}
	return mounts
}

// kernelOwn are those of the kernel's file systems that show what is the job's own.
func kernelOwn(j *config.Jail) []specs.Mount {
	own := map[string]bool{
		"/dev/pts": true, CgroupRoot: j.Isolation.Cgroups == config.CgroupsJob, "/proc": slices.Contains(j.Isolation.Namespaces, "pid"), "/dev/mqueue": slices.Contains(j.Isolation.Namespaces, "ipc"),
	}
	return slices.DeleteFunc(kernelMounts(j), func(m specs.Mount) bool { return !own[m.Destination] })
}

func sized(bytes int64) []string {
	options := []string{"mode=1777", "nosuid", "nodev"}
	if bytes > 0 {
		options = append(options, fmt.Sprintf("size=%d", bytes))
	}
	return options
}

// UserMountSpecs are --jail-mount in the terms of the runtime-spec.
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
