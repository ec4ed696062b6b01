// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// mount is one mount of the peers' view of the jail.
type mount struct{ kind, source, target string }

// listTreeMounts returns the mounts of the jail for the peers prepared, setns and bwrap: the
// same root as gojail's, with the files that slurmstepd and srun need.
func listTreeMounts() []mount {
	list := []mount{
		{"bind", jailRoot, "/"},
		{"proc", "proc", "/proc"},
		{"bind", "/sys", "/sys"},
		{"rbind", "/dev", "/dev"}, // with pts and shm: three mounts
		{"tmpfs", "tmpfs", "/run"},
		{"bind", "/run/munge", "/run/munge"},
		{"bind", "/etc/resolv.conf", "/etc/resolv.conf"},
		{"bind", "/etc/hosts", "/etc/hosts"},
		{"bind", "/etc/slurm", "/etc/slurm"},
		{"bind", "/etc/pam.d/slurm", "/etc/pam.d/slurm"},
		{"bind", "/var/spool/slurmd", "/var/spool/slurmd"},
		{"bind", "/var/log/slurm", "/var/log/slurm"},
		{"bind", "/usr/bin/srun", "/usr/bin/srun"},
		{"bind", "/usr/bin/scancel", "/usr/bin/scancel"},
		{"bind", partsDir, partsDir},
	}
	for _, pattern := range []string{"/usr/lib/*/slurm-wlm", "/usr/lib/*/libmunge.so.2"} {
		found, _ := filepath.Glob(pattern)
		for _, path := range found {
			list = append(list, mount{"bind", path, path})
		}
	}
	for _, mask := range []string{"/proc/keys", "/proc/timer_list", "/proc/kcore", "/proc/sched_debug"} {
		if _, err := os.Stat(mask); err == nil {
			list = append(list, mount{"bind", "/dev/null", mask})
		}
	}
	return list
}

// makeTargets creates the mount points in the jail of the machine.
func (m *machine) makeTargets() error {
	for _, t := range listTreeMounts() {
		target := m.Path(jailRoot + t.target)
		if strings.HasPrefix(t.target, "/proc/") || strings.HasPrefix(t.target, "/run/") {
			continue // on a mount of the tree
		}
		if _, err := os.Stat(target); err == nil {
			continue
		}
		info, err := os.Stat(m.Path(t.source))
		if err != nil || info.IsDir() {
			err = os.MkdirAll(target, 0o755)
		} else if err = os.MkdirAll(filepath.Dir(target), 0o755); err == nil {
			err = os.WriteFile(target, nil, 0o644)
		}
		if err != nil {
			return fmt.Errorf("bench: mount target in the jail: %w", err)
		}
	}
	return nil
}

// formatTreeScript returns a script for sh in a private mount namespace, which mounts the tree on a directory.
func formatTreeScript(dir string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "mkdir -p %s\n", dir)
	for _, m := range listTreeMounts() {
		target := strings.TrimSuffix(dir+m.target, "/")
		switch m.kind {
		case "bind", "rbind":
			fmt.Fprintf(&b, "mount --%s %s %s\n", m.kind, m.source, target)
		default:
			fmt.Fprintf(&b, "mount -t %s %s %s\n", m.kind, m.source, target)
		}
		if m.target == "/run" {
			fmt.Fprintf(&b, "mkdir %s/munge\n", target)
		}
	}
	return b.String()
}

// formatBwrapArguments returns the arguments of bwrap for the same tree.
func formatBwrapArguments() []string {
	args := []string{"bwrap"}
	for _, m := range listTreeMounts() {
		switch m.kind {
		case "bind":
			args = append(args, "--bind", m.source, m.target)
		case "rbind":
			args = append(args, "--dev-bind", m.source, m.target)
		default:
			args = append(args, "--"+m.kind, m.target)
		}
	}
	return append(args, "--")
}
