// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/healthcheck/check"
	"github.com/gojail/gojail/healthcheck/config"
	"github.com/gojail/gojail/healthcheck/nvml/fakenvml"
	"github.com/gojail/gojail/internal/nstest"
)

// Each check has testdata/checks/NAME with what it says of a node where its subject
// is good, bad, absent, and garbled:
//
//	== good: VERDICT: TEXT       "..." at its end: and more; or, where there is no such node:
//	== good: none: WHY
//	-- health.toml               the configuration; DIR is where the node is
//	-- kept                      the state that the last run stored
//	-- nvml                      eight GPUs; lines of fakenvml for those that differ
//	-- nhc.conf                  where only root can write
//	-- proc/7/stat uid=1000      any other file, whose directory may have an owner
var situations = []string{"good", "bad", "absent", "garbled"}

// situation is one of these situations.
type situation struct {
	verdict, text string
	files         map[string]string
}

func TestEachCheckOnEachNode(t *testing.T) {
	if !nstest.IsRoot() {
		t.Skip("needs root: nodes have files of several owners")
	}
	for _, check := range All() {
		all := readSituations(t, check.Name)
		for _, name := range situations {
			s, ok := all[name]
			assert.True(t, ok, "testdata/checks/%s has no %q", check.Name, name)
			if !ok || s.verdict == "none" {
				continue
			}
			f := s.look(t, check)
			if start, found := strings.CutSuffix(s.text, "..."); found && strings.HasPrefix(f.Text, start) {
				s.text = f.Text
			}
			assert.Equal(t, s.verdict+": "+s.text, f.Verdict.String()+": "+f.Text, "%s, %s: %s", check.Name, name, f.Detail)
		}
	}
	files, err := os.ReadDir("testdata/checks")
	require.NoError(t, err)
	assert.Len(t, files, len(All()), "files and checks")
}

// readSituations parses a file of testdata/checks.
func readSituations(t *testing.T, check string) map[string]*situation {
	text, err := os.ReadFile(filepath.Join("testdata/checks", check))
	if !assert.NoError(t, err) {
		return nil
	}
	all := map[string]*situation{}
	var s *situation
	file := ""
	for row := range strings.Lines(string(text)) {
		row = strings.TrimSuffix(row, "\n")
		if head, found := strings.CutPrefix(row, "== "); found {
			name, want, _ := strings.Cut(head, ": ")
			s, file = &situation{files: map[string]string{}}, ""
			s.verdict, s.text, _ = strings.Cut(want, ": ")
			all[name] = s
		} else if head, found := strings.CutPrefix(row, "-- "); found {
			file = head
			s.files[file] = ""
		} else if file != "" {
			s.files[file] += row + "\n"
		} else {
			assert.Empty(t, row, "testdata/checks/%s", check)
		}
	}
	return all
}

// look runs the check on the node.
func (s *situation) look(t *testing.T, check check.Check) check.Finding {
	h := testHost(t)
	dir := filepath.Dir(h.Roots.Sys)
	s.text = strings.ReplaceAll(s.text, "DIR", dir)
	h.Roots.Kmsg = filepath.Join(h.Roots.Dev, "kmsg")
	h.Now = time.Now
	h.Command = func(ctx context.Context, name string, args ...string) ([]byte, error) {
		return exec.CommandContext(ctx, name, args...).Output()
	}
	text := ""
	for path, content := range s.files {
		content = strings.ReplaceAll(strings.ReplaceAll(strings.TrimRight(content, "\n")+"\n", "DIR", dir), `\0`, "\x00")
		path, owner, _ := strings.Cut(path, " uid=")
		switch path {
		case "health.toml":
			text += content
		case "kept":
			h.State = []byte(content)
		case "nhc.conf":
			nhc, err := os.MkdirTemp("/root", "gojail-test-")
			require.NoError(t, err)
			t.Cleanup(func() { os.RemoveAll(nhc) })
			put(t, nhc+"/nhc.conf", content)
			text += fmt.Sprintf("nhc = %q\n", nhc+"/nhc.conf")
		case "nvml":
			for i := range 8 {
				put(t, fmt.Sprintf("%s/bus/pci/devices/0000:%02x:00.0/vendor", h.Roots.Sys, 0x10+i), "0x10de\n")
				put(t, fmt.Sprintf("%s/bus/pci/devices/0000:%02x:00.0/class", h.Roots.Sys, 0x10+i), "0x030200\n")
			}
			text += fmt.Sprintf("gpu.library = %q\n", fakenvml.New(t, content).Path)
		default:
			put(t, filepath.Join(dir, path), content)
			if strings.HasPrefix(path, "bin/") {
				require.NoError(t, os.Chmod(filepath.Join(dir, path), 0o755))
			}
			if uid, err := strconv.Atoi(owner); err == nil {
				require.NoError(t, os.Chown(filepath.Dir(filepath.Join(dir, path)), uid, uid))
			}
		}
	}
	c, err := config.Parse(text, h.Node, Names())
	require.NoError(t, err, check.Name)
	h.Settings, h.SlurmConf = &c.Settings, c.Slurm.Conf
	return check.Run(context.Background(), h)
}
