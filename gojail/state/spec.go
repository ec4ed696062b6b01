// SPDX-License-Identifier: Apache-2.0

package state

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	specs "github.com/opencontainers/runtime-spec/specs-go"

	"github.com/gojail/gojail/gojail/config"
	"github.com/gojail/gojail/gojail/contract"
	"github.com/gojail/gojail/gojail/node"
	"github.com/gojail/gojail/gojail/plan"
	"github.com/gojail/gojail/internal/oneline"
)

// Spec returns the config.json of a sandbox: that of its template, then the job's own mounts and the user's. While the
// holder lives, mounts are described as the kernel reports them; after that, as planned.
func Spec(s *State, c *config.Config, h *node.Hardware, job, sandbox string) (*specs.Spec, error) {
	path := filepath.Join(s.JobDir(job), sandbox)
	text, err := os.ReadFile(path + contract.SpecSuffix)
	if err != nil {
		return nil, fmt.Errorf("cannot read the config.json of job %s, sandbox %s: %w", job, sandbox,
			oneline.Cause(err))
	}
	var spec specs.Spec
	if err := json.Unmarshal(text, &spec); err != nil {
		return nil, fmt.Errorf("%s.json is damaged: %w", path, err)
	}
	users, err := s.UserMounts(job, sandbox)
	if err != nil {
		return nil, err
	}
	j := c.Jails[jailOf(sandbox)]
	if j == nil { // it was removed from the configuration
		j = &config.Jail{Name: jailOf(sandbox), Tmp: config.TmpDisk, Slurm: true}
	}
	r := ReadRecord(path)
	// keepMade drops those that were not made.
	own := append(plan.JobMounts(c, h, j, job, r.Alive, os.Stat), plan.UserMountSpecs(users)...)
	if r.Alive {
		table, err := readMountTable(r)
		if err != nil {
			return nil, err
		}
		defer table.close()
		table.keepMade(spec.Mounts, nil) // updates the mounts in place: a template has all of its mounts
		scratch, _ := os.Readlink(filepath.Join(s.JobDir(job), contract.ScratchLink))
		own = append(table.keepMade(own, spec.Mounts), table.cgroupMounts()...)
		describeTmp(own, table, filepath.Join(scratch, "tmp"))
		if top := table.topAt("/"); j.Writable != "" && top.FSType == "overlay" {
			spec.Root.Readonly = false
			spec.Mounts = slices.Insert(spec.Mounts, 0, plan.RootOverlay(j))
		}
	}
	spec.Mounts = append(spec.Mounts, own...)
	return &spec, nil
}

// UserMounts returns the --jail-mount that a sandbox was built with.
func (s *State) UserMounts(job, sandbox string) ([]config.UserMount, error) {
	path := filepath.Join(s.JobDir(job), sandbox+contract.MountsSuffix)
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read %s: %w", path, oneline.Cause(err))
	}
	mounts, err := config.ParseUserMounts(string(text))
	if err != nil {
		return nil, fmt.Errorf("%s is damaged: %w", path, err)
	}
	return mounts, nil
}

// describeTmp describes the job's /tmp and /dev/shm as they are mounted: the configuration may have changed since.
func describeTmp(mounts []specs.Mount, table *mountTable, scratch string) {
	for i := range mounts {
		m := &mounts[i]
		if m.Destination != "/tmp" && m.Destination != "/dev/shm" {
			continue
		}
		top := table.topAt(m.Destination)
		if top.FSType != "tmpfs" || top.Root != "/" {
			*m = specs.Mount{Destination: m.Destination, Type: "bind", Source: scratch, Options: []string{"bind"}}
		} else {
			*m = plan.Tmpfs(m.Destination, slices.Concat([]string{"mode=1777"}, sizeOptions(top))...)
		}
		setFlags(m, top)
	}
}

// jailOf returns the jail of a sandbox: its name without "+" and 16 digits (docs/state.md).
func jailOf(sandbox string) string {
	if n := len(sandbox) - 17; n > 0 && sandbox[n] == '+' {
		return sandbox[:n]
	}
	return sandbox
}
