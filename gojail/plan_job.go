// SPDX-License-Identifier: Apache-2.0

package gojail

import (
	"fmt"
	"path/filepath"

	specs "github.com/opencontainers/runtime-spec/specs-go"
)

// JobMounts are the mounts that each sandbox adds to its jail's template. They
// are made in C when a sandbox is built (spank/); here they are for people, and
// for finding out which mount targets a jail needs.
func JobMounts(c *Config, j *Jail, job string) []specs.Mount {
	tmp := specs.Mount{
		Destination: "/tmp", Type: "bind", Source: filepath.Join(c.Scratch, "jobs", job, "tmp"),
		Options: []string{"bind", "nosuid", "nodev"},
	}
	if j.Tmp == TmpTmpfs {
		tmp = tmpfs("/tmp", sized(j.TmpSize)...)
	}
	mounts := []specs.Mount{tmp, tmpfs("/dev/shm", sized(j.ShmSize)...)}
	if number, err := number(job); err == nil { // Slurm's name: five digits at least
		dir := filepath.Join(c.Slurm.Spool, fmt.Sprintf("job%05d", number))
		mounts = append(mounts, bind(dir, "bind", "ro", "nosuid", "nodev"))
	}
	return mounts
}

func sized(bytes int64) []string {
	options := []string{"mode=1777", "nosuid", "nodev"}
	if bytes > 0 {
		options = append(options, fmt.Sprintf("size=%d", bytes))
	}
	return options
}
