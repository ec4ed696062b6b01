// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/healthcheck/check"
	"github.com/gojail/gojail/healthcheck/config"
	"github.com/gojail/gojail/healthcheck/nhc"
	"github.com/gojail/gojail/internal/nstest"
)

// nhcConf writes an nhc.conf into a directory that only root can write.
func nhcConf(t *testing.T, h *check.Host, s *check.Settings, text string) {
	t.Helper()
	if !nstest.IsRoot() {
		t.Skip("needs root: an nhc.conf must be root's")
	}
	if s.NHC == "" {
		dir, err := os.MkdirTemp("/root", "gojail-test-")
		require.NoError(t, err)
		t.Cleanup(func() { os.RemoveAll(dir) })
		s.NHC = dir + "/nhc.conf"
		put(t, h.Roots.Proc+"/sys/kernel/hostname", "n1.cluster\n")
		put(t, h.Roots.Proc+"/self/mounts", "/dev/sda1 / ext4 rw 0 0\n")
		put(t, h.Roots.Proc+"/loadavg", "1.0 1.0 1.0 1/1 1\n")
	}
	put(t, s.NHC, text)
}

func TestNHC(t *testing.T) {
	h, s := testHost(t), config.DefaultSettings()
	node, files := newNHCCheck(nhc.Node), newNHCCheck(nhc.Storage)
	for _, l := range []checkFunc{node, files, nhcConfig} {
		expect(t, once(h, l, s), check.NotApplicable, "")
	}
	nhcConf(t, h, s, "* || check_fs_mount_rw /\nn1* || check_ps_loadavg 5\nn2* || check_fs_mount /x\n* || check_file_test -d /\n")
	expect(t, once(h, node, s), check.OK, "all 2 assertions of nhc.conf hold")
	expect(t, once(h, files, s), check.OK, "all 1 assertions of nhc.conf hold")
	expect(t, once(h, newNHCCheck(nhc.Command), s), check.NotApplicable, "")
	expect(t, once(h, nhcConfig, s), check.OK, "")

	nhcConf(t, h, s, "\n* || check_fs_mount -0 -f /y\n")
	expect(t, once(h, node, s), check.Warn, "line 2: /y is not mounted")
	nhcConf(t, h, s, "\n* || check_fs_mount -0 -f /y\n* || check_fs_mount /x\n")
	expect(t, once(h, node, s), check.Fail, "line 3: /x is not mounted")
	nhcConf(t, h, s, "* || check_fs_free /y 3%\n")
	expect(t, once(h, files, s), check.Warn, "line 1: /y is not a mount point, which NHC ignores")
	nhcConf(t, h, s, "* || check_hw_cpuinfo 1\n* || check_fs_mount -0 -f /y\n")
	expect(t, once(h, node, s), check.Unknown, "line 1: cannot read cpuinfo")
}

// TestSysconfigOfNHC: what NHC reads before its nhc.conf applies here, too; a file that others can write is refused.
func TestSysconfigOfNHC(t *testing.T) {
	h, s := testHost(t), config.DefaultSettings()
	nhcConf(t, h, s, "* || check_fs_mount /x\n")
	h.Roots.Etc = filepath.Dir(s.NHC)
	node := newNHCCheck(nhc.Node)
	expect(t, once(h, node, s), check.Fail, "line 1: /x is not mounted")
	expect(t, once(h, nhcConfig, s), check.OK, "")
	path := h.Roots.Etc + "/default/nhc"
	put(t, path, "TIMEOUT=5\nMARK_OFFLINE=0\n")
	expect(t, once(h, node, s), check.Warn, "line 1: /x is not mounted")
	expect(t, once(h, nhcConfig, s), check.Warn, path+" line 2: write drain = false in [slurm] of health.toml")
	require.NoError(t, os.Chmod(path, 0o666))
	for verdict, f := range map[check.Verdict]check.Finding{check.Unknown: once(h, node, s), check.Fail: once(h, nhcConfig, s)} {
		expect(t, f, verdict, "")
		assert.Contains(t, f.Text, path+": is writable by others (mode 0666)")
	}
}

func TestNHCLinesThatAreNotUnderstood(t *testing.T) {
	h, s := testHost(t), config.DefaultSettings()
	nhcConf(t, h, s, "* || check_fs_mount /\n* || check_nothing\n* || check_ps_service -S sshd\n")
	expect(t, once(h, newNHCCheck(nhc.Node), s), check.Unknown, "") // no processes, but the rest was looked at
	expect(t, once(h, nhcConfig, s), check.Warn, "line 2: unknown check check_nothing; line 3: -S is ignored, since checks change nothing")
	require.NoError(t, os.Chmod(s.NHC, 0o666))
	expect(t, once(h, newNHCCheck(nhc.Node), s), check.Unknown, "")
	f := once(h, nhcConfig, s)
	assert.Equal(t, check.Fail, f.Verdict)
	assert.Contains(t, f.Text, "writable by others")
}

func TestNHCLineWithoutAnAnswer(t *testing.T) {
	h, s := testHost(t), config.DefaultSettings()
	never := make(chan struct{})
	defer close(never)
	h.Command = func(context.Context, string, ...string) ([]byte, error) { <-never; return nil, nil }
	nhcConf(t, h, s, "* || check_cmd_status /usr/bin/env\n")
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	expect(t, newNHCCheck(nhc.Command)(ctx, h, s), check.Unknown, "line 1: no answer to check_cmd_status /usr/bin/env")
	var p problems
	judgeMissingAnswer(&p, &nhc.Line{Number: 4, Text: "check_fs_free / 3%"}, nhc.Storage)
	expect(t, p.buildFinding(""), check.Fail, "line 4: no answer to check_fs_free / 3%")
}

// TestNHCSettings: MARK_OFFLINE=0 holds for the lines after it, also if their process hangs.
func TestNHCSettings(t *testing.T) {
	h, s := testHost(t), config.DefaultSettings()
	node, files := newNHCCheck(nhc.Node), newNHCCheck(nhc.Storage)
	fault := "* || check_fs_mount /x\n* || check_file_test -d /x\n"
	nhcConf(t, h, s, "* || export NHC_CHECK_ALL=1 MARK_OFFLINE=0\n"+fault)
	expect(t, once(h, node, s), check.Warn, "line 2: /x is not mounted")
	f := once(h, files, s)
	expect(t, f, check.Warn, "line 3: test -d /x fails")
	h.State = f.State
	assert.Equal(t, "nhc.conf asks not to drain", recallQuiet(h))
	expect(t, once(h, nhcConfig, s), check.Warn, "line 1: write drain = false in [slurm] of health.toml")

	nhcConf(t, h, s, "* || export NHC_CHECK_ALL=1 MARK_OFFLINE=1\n* || HOSTNAME=\"$HOSTNAME_S\"\n"+fault)
	expect(t, once(h, node, s), check.Fail, "line 3: /x is not mounted")
	f = once(h, files, s)
	expect(t, f, check.Fail, "line 4: test -d /x fails")
	h.State = f.State
	assert.Empty(t, recallQuiet(h))
	expect(t, once(h, nhcConfig, s), check.OK, "all lines of nhc.conf are understood")

	nhcConf(t, h, s, "* || SITE=1 check_fs_mount /\n")
	expect(t, once(h, nhcConfig, s), check.Warn, "line 1: the setting SITE has no counterpart")
}
