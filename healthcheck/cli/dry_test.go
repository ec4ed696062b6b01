// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// readTree returns each file of a tree with its mode and its text.
func readTree(t *testing.T, dir string) map[string]string {
	all := map[string]string{}
	require.NoError(t, filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		var text []byte
		if info.Mode().IsRegular() {
			text, err = os.ReadFile(path)
		}
		all[path] = fmt.Sprintf("%v %d %s", info.Mode(), info.ModTime().UnixNano(), text)
		return err
	}))
	return all
}

// TestNothingIsCreated: a command that changes nothing leaves no file, no lock and no directory, and moves none of an
// earlier version.
func TestNothingIsCreated(t *testing.T) {
	config, dir := site(t, "nhc = \"DIR/nhc.conf\"\n[[filesystem]]\npath = \"DIR/nothing\"\n"+only("fs-mounted", "nhc", "nhc-files", "nhc-config"))
	require.NoError(t, os.WriteFile(dir+"/nhc.conf", []byte("* || check_hw_eth nothing\n* || check_file_test -d /\n"), 0o600))
	require.NoError(t, os.WriteFile(dir+"/scontrol", []byte("#!/bin/sh\nexit 1\n"), 0o700))
	for _, files := range []map[string]string{
		{}, // on a new node
		{"run/history.json": "{}", "state/drain.json": `{"id":"ab","check":"fs-mounted","reason":"fs-mounted: x [node_problem] gojail (id ab)"}`}, // of an earlier version
		{"run/nodes/n1/history.json": "{}", "run/nodes/n1/lock": "", "run/nodes/n1/child.0.lock": "nhc", "state/nodes/n1/drain.json": "damaged"},
	} {
		for _, of := range []string{"run", "state"} {
			require.NoError(t, os.RemoveAll(filepath.Join(dir, of)))
		}
		for path, text := range files {
			require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, path)), 0o700))
			require.NoError(t, os.WriteFile(filepath.Join(dir, path), []byte(text), 0o600))
		}
		before := readTree(t, dir)
		for _, args := range [][]string{{"--dry-run"}, {"--dry-run", "--json"}, {"list"}, {"explain", "nhc"}, {"nccl", "--dry-run"}} {
			out, exit, err := call(append(args, "--config", config, "--node", "n1")...)
			if args[0] == "--dry-run" {
				require.NoError(t, err)
				assert.Equal(t, 2, exit, out)
				assert.Contains(t, out, "nothing is not mounted")
				assert.Contains(t, out, "line 1: network device nothing does not exist")
			}
			assert.Equal(t, before, readTree(t, dir), args)
		}
	}
}
