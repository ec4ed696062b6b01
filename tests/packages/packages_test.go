// SPDX-License-Identifier: Apache-2.0

// Package packages tests what make deb and make rpm make.
package packages

import (
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/tests/harness"
)

// releases are the releases of Slurm with which the packages are tried. Each had a package of its own in gojail 0.1.0.
var releases = []string{"22.05", "24.11", "26.05"}

// repository is where the sources are, and elsewhere a copy of them for the tests that want one.
const repository = "../.."

var elsewhere harness.Shared[*sources]

func TestMain(m *testing.M) { os.Exit(elsewhere.Main(m)) }

// sources are a copy of the sources, built there.
type sources struct{ above, dir string }

// copySources copies the sources to another directory, with another length, and builds all of them anew: nothing of build/ is copied
// but what the tests have fetched, and Go finds nothing that it has compiled in the repository.
func copySources() (*sources, error) {
	above, err := os.MkdirTemp("", "elsewhere-")
	if err != nil {
		return nil, err
	}
	s := &sources{above, filepath.Join(above, "a/directory/of/another/length")}
	cache, err := filepath.Abs(filepath.Join(repository, "build/cache"))
	if err != nil {
		return s, err
	}
	cmd := exec.Command("/bin/bash", "-euo", "pipefail", "-c", `mkdir -p "$1/build"
{ git ls-files -co --exclude-standard 2>/dev/null || find . -path ./build -prune -o -type f -print; } | tar -cf - -T - | tar -xf - -C "$1"
packaging/version >"$1/.version"
ln -s "$2" "$1/build/cache"
make -C "$1" all`, "bash", s.dir, cache)
	cmd.Dir, cmd.Env = repository, append(os.Environ(), "GOCACHE="+above+"/go")
	if out, err := cmd.CombinedOutput(); err != nil {
		return s, fmt.Errorf("building a copy of the sources: %w\n%s", err, out)
	}
	return s, nil
}

func (s *sources) Stop() error { return os.RemoveAll(s.above) }

// run runs a program of the repository, and fails the test where it fails.
func run(t *testing.T, env []string, args ...string) string {
	t.Helper()
	return runIn(t, repository, env, args...)
}

// runIn likewise runs a program of the sources in a directory.
func runIn(t *testing.T, sources string, env []string, args ...string) string {
	t.Helper()
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Dir, cmd.Env = sources, append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	return string(out)
}

// build makes the packages of a kind from the sources in a directory, and returns their paths, those of the repository relative to it.
func build(t *testing.T, sources, kind string) []string {
	t.Helper()
	if why := harness.Missing(); why != "" {
		t.Skip(why)
	}
	if testing.Short() {
		t.Skip("builds packages")
	}
	dir, err := os.MkdirTemp(filepath.Join(sources, "build"), "packages-")
	require.NoError(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	// A copy has no commit that says when.
	runIn(t, sources, []string{"OUT=build/" + filepath.Base(dir), "SOURCE_DATE_EPOCH=1750000000"}, "packaging/build", kind)
	files, err := filepath.Glob(dir + "/*." + kind)
	require.NoError(t, err)
	require.Len(t, files, map[string]int{"deb": 2 + len(releases), "rpm": 2}[kind])
	if sources != repository {
		return files
	}
	for i, file := range files {
		files[i], err = filepath.Rel(repository, file)
		require.NoError(t, err)
	}
	return files
}

// requireSameElsewhere requires the same bytes of packages that a copy of the sources makes in another directory.
func requireSameElsewhere(t *testing.T, kind string, files []string) {
	t.Helper()
	other := elsewhere.Get(t, copySources)
	assert.Equal(t, sumFiles(t, files), sumFiles(t, build(t, other.dir, kind)))
}

// sumFiles returns the sums of files, by name.
func sumFiles(t *testing.T, files []string) map[string]string {
	t.Helper()
	sums := map[string]string{}
	for _, file := range files {
		path := file
		if !filepath.IsAbs(path) {
			path = filepath.Join(repository, file)
		}
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		sums[filepath.Base(file)] = fmt.Sprintf("%x", sha256.Sum256(text))
	}
	return sums
}

// TestDeb: the same bytes from the same sources at another place; installed, upgraded, removed and purged; nothing for lintian to say.
func TestDeb(t *testing.T) {
	debs := build(t, repository, "deb")
	requireSameElsewhere(t, "deb", debs)
	for _, release := range releases {
		t.Run(release, func(t *testing.T) {
			run(t, nil, "tests/releases/make", release)
			assert.Contains(t, run(t, nil, "tests/packages/inside", filepath.Dir(debs[0]), release), "\npassed\n")
		})
	}
	// The transitional packages disappear, as they have no documentation of their own.
	lasting := slices.DeleteFunc(debs, func(deb string) bool { return strings.HasPrefix(filepath.Base(deb), "gojail-slurm-") })
	assert.Empty(t, run(t, nil, append([]string{"lintian", "--allow-root", "--tag-display-limit=0", "--fail-on=error,warning", "--display-level=warning"}, lasting...)...))
}

// TestRPM: likewise, in a root whose RPM database has the packages that these need; nothing for rpmlint to say.
func TestRPM(t *testing.T) {
	rpms := build(t, repository, "rpm")
	requireSameElsewhere(t, "rpm", rpms)
	for _, path := range rpms {
		run(t, nil, "rpm", "--nosignature", "-K", path)
	}
	assert.Contains(t, run(t, nil, "tests/packages/rpms", filepath.Dir(rpms[0])), "\npassed\n")
	assert.Contains(t, run(t, nil, append([]string{"rpmlint", "-c", "packaging/rpmlint.toml"}, rpms...)...), " 0 errors, 0 warnings,")
}
