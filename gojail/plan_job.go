// SPDX-License-Identifier: Apache-2.0

package gojail

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
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
		if exists(dir) { // of a batch job
			mounts = append(mounts, bind(dir, "bind", "ro", "nosuid", "nodev"))
		}
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

// UserMountSpecs are --jail-mount in the terms of the runtime-spec.
func UserMountSpecs(list []UserMount) []specs.Mount {
	var mounts []specs.Mount
	for _, u := range list {
		m := bind(u.Destination, "rbind", "nosuid", "nodev")
		m.Source = u.Source
		if u.Readonly {
			m.Options = append(m.Options, "ro")
		}
		mounts = append(mounts, m)
	}
	return mounts
}

// SandboxSpec is the config.json of a sandbox as it was built: what its template
// was assembled from, the job's own mounts and the user's.
func SandboxSpec(s *State, c *Config, job, sandbox string) (*specs.Spec, error) {
	path := filepath.Join(s.job(job), sandbox)
	text, err := os.ReadFile(path + ".json")
	if err != nil {
		return nil, fmt.Errorf("job %s has no config.json of its sandbox %s: %w", job, sandbox, cause(err))
	}
	var spec specs.Spec
	if err := json.Unmarshal(text, &spec); err != nil {
		return nil, fmt.Errorf("%s.json is damaged: %w", path, err)
	}
	if j := c.Jails[jailOf(sandbox)]; j != nil {
		spec.Mounts = append(spec.Mounts, JobMounts(c, j, job)...)
	}
	list, err := os.ReadFile(path + ".mounts")
	if errors.Is(err, fs.ErrNotExist) {
		return &spec, nil
	}
	users, err := ParseUserMounts(string(list))
	if err != nil {
		return nil, fmt.Errorf("%s.mounts is damaged: %w", path, err)
	}
	spec.Mounts = append(spec.Mounts, UserMountSpecs(users)...)
	return &spec, nil
}

// jailOf is the jail of a sandbox: its name, less "+" and 16 digits (include/gojail.h).
func jailOf(sandbox string) string {
	if n := len(sandbox) - 17; n > 0 && sandbox[n] == '+' {
		return sandbox[:n]
	}
	return sandbox
}
