// SPDX-License-Identifier: Apache-2.0

package shim

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"
)

// sanitize is the list of gcc's arguments for the host and the plugin.
var sanitize = []string{"-std=gnu11", "-O1", "-g", "-fPIC", "-fno-omit-frame-pointer", "-fsanitize=address,undefined",
	"-fno-sanitize-recover=all", "-Wall", "-Wextra", "-Werror", "-D_GNU_SOURCE", `-DGOJAIL_RELEASE="0"`, "-I../../include", "-I../../spank"}

// compiled returns the host and the plugin, which its first call compiles for every test: that takes seconds of a processor.
var compiled = sync.OnceValues(compileHost)

// compiledDir is the directory of what is compiled, or "".
var compiledDir string

// TestMain removes what the tests share.
func TestMain(m *testing.M) {
	code := m.Run()
	if compiledDir != "" {
		os.RemoveAll(compiledDir)
	}
	os.Exit(code)
}

// compileHost compiles the host and the plugin into a directory of their own.
func compileHost() (h host, err error) {
	if compiledDir, err = makeDir(); err != nil {
		return host{}, err
	}
	h = host{program: filepath.Join(compiledDir, "host"), plugin: filepath.Join(compiledDir, "spank_gojail.so")}
	sources, err := listSources()
	if err != nil {
		return host{}, err
	}
	if err := compile(append([]string{"-shared", "-fvisibility=hidden", "-o", h.plugin}, sources...)...); err != nil {
		return host{}, err
	}
	return h, compile("-rdynamic", "-o", h.program, "host/host.c", "host/faults.c", "-ldl")
}

// compile runs gcc with the sanitizers.
func compile(args ...string) error {
	out, err := exec.Command("gcc", slices.Concat(sanitize, args)...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("gcc: %w\n%s", err, out)
	}
	return nil
}

// listSources returns the sources of the plugin by folder, as the Makefile does.
func listSources() (sources []string, err error) {
	for _, folder := range []string{"common", "release", "plugin"} {
		found, _ := filepath.Glob("../../spank/" + folder + "/*.c")
		if len(found) == 0 {
			return nil, fmt.Errorf("no sources in spank/%s", folder)
		}
		sources = append(sources, found...)
	}
	return sources, nil
}
