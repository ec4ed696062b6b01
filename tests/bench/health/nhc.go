// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

const nhcURL = "https://github.com/mej/nhc"

// newNHC returns LBNL NHC with as many checks of the same kinds, as far as it has them:
// for GPUs it only has nvidia-smi. It neither asks nor tells Slurm (MARK_OFFLINE=0),
// as gojail-healthcheck on a healthy node; that spares NHC a sinfo for each run.
//
// It reads the kernel's log line by line in bash, once for each check, which takes
// longer than all else if the log is long: "nhc" is without, "nhc+log" with that.
func (n *node) newNHC(ctx context.Context, s settings) []*candidate {
	source, err := n.findNHCSource(ctx, s.nhc)
	if err != nil {
		return []*candidate{{name: "nhc", why: err.Error()}}
	}
	log := []string{"check_cmd_dmesg -t 5 -m '!/NVRM: Xid .*: 79,/'", "check_cmd_dmesg -t 5 -m '!/Remounting filesystem read-only/'"}
	return []*candidate{n.newNHCWith(ctx, "nhc", source, n.listNHCChecks()), n.newNHCWith(ctx, "nhc+log", source, append(n.listNHCChecks(), log...))}
}

func (n *node) newNHCWith(ctx context.Context, name, source string, lines []string) *candidate {
	c := &candidate{name: name}
	conf := filepath.Join(n.dir, name)
	text := "* || export MARK_OFFLINE=0 NVIDIA_SMI_HEALTHMON=" + n.smi + "\n* || " + strings.Join(lines, "\n* || ") + "\n"
	err := os.Mkdir(conf, 0o755)
	if err == nil {
		err = os.Symlink(filepath.Join(source, "scripts"), filepath.Join(conf, "scripts"))
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(conf, "nhc.conf"), []byte(text), 0o644)
	}
	if err != nil {
		c.why = err.Error()
		return c
	}
	c.argv = []string{filepath.Join(source, "nhc"), "-D", conf, "-c", filepath.Join(conf, "nhc.conf"), "-l", filepath.Join(conf, "log"), "HELPERDIR=" + filepath.Join(source, "helpers"), "MARK_OFFLINE=0"}
	c.env = bare
	c.about = fmt.Sprintf("LBNL NHC %s, %d checks, nvidia-smi", readVersion(source), len(lines))
	cmd := exec.CommandContext(ctx, c.argv[0], c.argv[1:]...)
	cmd.Env = c.env
	if out, err := cmd.CombinedOutput(); err != nil {
		log, _ := os.ReadFile(filepath.Join(conf, "log"))
		c.why = fmt.Sprintf("it says: %v: %s", err, lastLine(string(out)+string(log)))
	}
	return c
}

func (n *node) listNHCChecks() []string {
	return []string{
		"check_fs_mount_rw -f /",
		"check_fs_mount_rw -t tmpfs -f " + n.scratch,
		"check_fs_free / 0%",
		"check_fs_ifree / 0%",
		"check_fs_free " + n.scratch + " 2%",
		"check_fs_ifree " + n.scratch + " 2%",
		"check_file_test -d -r -w -x " + n.scratch,
		"check_hw_physmem 1k 900TB",
		"check_hw_physmem_free 1k",
		"check_hw_swap 0 900TB",
		"check_hw_mem_free 1k",
		"check_hw_eth lo",
		"check_ps_daemon " + readOwnName() + " root",
		"check_ps_blacklist telnetd",
		"check_ps_loadavg 10000",
		"check_file_contents /proc/driver/nvidia/version '/570.86.15/'",
		"check_file_test -e /proc/self/mountinfo",
		"check_hw_swap_free 0",
		"check_cmd_status -t 5 -r 0 true",
		"check_nvsmi_healthmon",
	}
}

// findNHCSource returns a directory with NHC's source, a clone if dir is "".
func (n *node) findNHCSource(ctx context.Context, dir string) (string, error) {
	if dir == "" {
		dir = filepath.Join(n.dir, "nhc-source")
		ctx, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		cmd := exec.CommandContext(ctx, "git", "clone", "--quiet", "--depth=1", nhcURL, dir)
		cmd.Env = append(os.Environ(), "GIT_TERMINAL_PROMPT=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			return "", fmt.Errorf("git clone %s: %w: %s; give a directory with --nhc", nhcURL, err, lastLine(string(out)))
		}
	}
	dir, err := filepath.Abs(dir)
	if err == nil {
		_, err = os.Stat(filepath.Join(dir, "scripts/lbnl_hw.nhc"))
	}
	return dir, err
}

// readVersion returns the version in NHC's configure.ac.
func readVersion(source string) string {
	text, _ := os.ReadFile(filepath.Join(source, "configure.ac"))
	m := regexp.MustCompile(`\[nhc_version\], \[([^]]*)\]`).FindSubmatch(text)
	if m == nil {
		return "of an unknown version"
	}
	return string(m[1])
}

func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return fmt.Sprintf("%.200s", lines[len(lines)-1])
}
