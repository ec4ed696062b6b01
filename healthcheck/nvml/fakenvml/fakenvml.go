// SPDX-License-Identifier: Apache-2.0

// Package fakenvml builds a replacement for NVIDIA's libnvidia-ml.so.1 from C, for tests: the
// result, error code and delay of each call come from a file. The package needs a C compiler.
// It does not model the behavior of a real driver.
package fakenvml

import (
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

//go:embed c/fakenvml.c
var source []byte

var build = sync.OnceValues(func() ([]byte, error) { return compile() })

func compile(flags ...string) ([]byte, error) {
	dir, err := os.MkdirTemp("", "fakenvml-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	c, so := filepath.Join(dir, "fakenvml.c"), filepath.Join(dir, "libnvidia-ml.so.1")
	if err := os.WriteFile(c, source, 0o600); err != nil {
		return nil, err
	}
	flags = append(flags, "-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Werror", "-fvisibility=hidden", "-o", so, c)
	out, err := exec.Command("cc", flags...).CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("cc: %w: %s", err, out)
	}
	return os.ReadFile(so)
}

// Library is one library, with its own results.
type Library struct{ Path string }

// New returns a library of eight healthy GPUs, changed by the given lines.
func New(t testing.TB, lines ...string) Library {
	t.Helper()
	binary, err := build()
	require.NoError(t, err)
	return library(t, binary, lines)
}

// Without returns a library that lacks functions, like that of an older driver: see Renamed.
func Without(t testing.TB, calls ...string) Library {
	t.Helper()
	var renamed []string
	for _, call := range calls {
		renamed = append(renamed, call, "lacking_"+call)
	}
	return Renamed(t, renamed)
}

// Renamed returns a library with other names for functions, each old name before its new one.
// Each process may load only one such library: see find in fakenvml.c.
func Renamed(t testing.TB, names []string, lines ...string) Library {
	t.Helper()
	var flags []string
	for pair := range slices.Chunk(names, 2) {
		flags = append(flags, "-D"+pair[0]+"="+pair[1])
	}
	binary, err := compile(flags...)
	require.NoError(t, err)
	return library(t, binary, lines)
}

func library(t testing.TB, binary []byte, lines []string) Library {
	l := Library{filepath.Join(t.TempDir(), "libnvidia-ml.so.1")}
	require.NoError(t, os.WriteFile(l.Path, binary, 0o755))
	require.NoError(t, os.WriteFile(l.Path+".answers", []byte(Healthy+strings.Join(lines, "\n")+"\n"), 0o644))
	return l
}

// Healthy is the state of eight idle GPUs with eighteen NVLinks each.
var Healthy = healthy()

func healthy() string {
	var b strings.Builder
	b.WriteString(`- nvmlSystemGetDriverVersion 0 570.86.15
- nvmlDeviceGetCount_v2 0 8
* nvmlDeviceGetName 0 NVIDIA H100 80GB HBM3
* nvmlDeviceGetPersistenceMode 0 1
* nvmlDeviceGetCurrPcieLinkWidth 0 16
* nvmlDeviceGetMaxPcieLinkWidth 0 16
* nvmlDeviceGetCurrPcieLinkGeneration 0 1
* nvmlDeviceGetMaxPcieLinkGeneration 0 5
* nvmlDeviceGetVbiosVersion 0 96.00.74.00.01
* nvmlDeviceGetApplicationsClock 0 1980 1980 2619
* nvmlDeviceGetDefaultApplicationsClock 0 1980 1980 2619
* nvmlDeviceGetPowerUsage 0 70000
* nvmlDeviceGetFieldValues/82 0 0 40
* nvmlDeviceGetTemperature 0 34
* nvmlDeviceGetTemperatureThreshold 0 92 89 95 87
* nvmlDeviceGetCurrentClocksEventReasons 0 1
* nvmlDeviceGetRetiredPages 3
* nvmlDeviceGetRetiredPagesPendingStatus 3
* nvmlDeviceGetGpuFabricInfo 0 0 3 0x1aa
`)
	b.WriteString("* nvmlDeviceGetNvLinkState 0" + strings.Repeat(" 1", 18) + "\n")
	for i := range 8 {
		fmt.Fprintf(&b, "%d nvmlDeviceGetMinorNumber 0 %d\n%d nvmlDeviceGetUUID 0 "+
			"GPU-00000000-0000-0000-0000-00000000000%d\n%d nvmlDeviceGetPciInfo_v3 0 00000000:%02X:00.0\n", i, i, i, i,
			i, 0x10+i)
	}
	return b.String()
}
