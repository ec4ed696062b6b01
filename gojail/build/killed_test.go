// SPDX-License-Identifier: Apache-2.0

package build

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/gojail/source/sourcetest"
	"github.com/gojail/gojail/gojail/store"
	"github.com/gojail/gojail/internal/nstest"
)

// editSource is the source for an edit in a child.
const editSource = "edit"

// buildOrEdit is what a child does until it is killed.
func buildOrEdit(jail *store.Jail, source string) error {
	if source != editSource {
		_, err := Build(context.Background(), jail, request(source))
		return err
	}
	_, err := Edit(context.Background(), jail, request(source), func(_ context.Context, root string) error {
		return errors.Join(os.WriteFile(filepath.Join(root, "new"), []byte("2"), 0o644), os.Remove(filepath.Join(root, "d1/f")))
	})
	return err
}

// manyFiles returns a source whose build takes some time.
func manyFiles(t *testing.T) string {
	var entries []string
	for i := range 300 {
		entries = append(entries, fmt.Sprintf("d%d/f=%s", i, strings.Repeat("x", 2000)))
	}
	return "oci:" + sourcetest.Layout(t, map[string]v1.Image{"": sourcetest.Image(t, entries, entries[:100])})
}

// killAtAnyMoment lets a child with a source end, and kills others like it, each later than the one before, until after the time
// that the first one took. After each there is no new version, or a whole one. base is the version that is always there, or "".
func killAtAnyMoment(t *testing.T, jail *store.Jail, dir, source, base string) {
	t.Helper()
	const rounds = 40
	killed, built := 0, 0
	var whole time.Duration
	for round := range rounds + 1 {
		cmd := exec.Command("/proc/self/exe", "-test.run=^$")
		cmd.Env = append(os.Environ(), buildVariable+"="+filepath.Dir(dir)+" "+source)
		var out bytes.Buffer
		cmd.Stdout = &out
		start := time.Now()
		require.NoError(t, cmd.Start())
		if round > 0 {
			time.Sleep(whole * time.Duration(round) * 5 / 4 / rounds) // any moment
			cmd.Process.Kill()
		}
		if cmd.Wait() != nil {
			killed++
		}
		if round == 0 {
			whole = time.Since(start)
			require.Zero(t, killed, out.String())
		}
		require.NotContains(t, out.String(), "\n", "what the child could not do")
		nstest.WaitUntilClosed(t, dir+"/work/*/owner.json")
		built += requireWholeVersions(t, jail, base)
	}
	t.Logf("%d of %d were killed, within up to %v; %d made a version", killed, rounds, whole, built)
	require.NotZero(t, killed)
	require.NotZero(t, built)
}

// requireWholeVersions fails if a version is not as it was built, removes all but base, and returns how many these were.
func requireWholeVersions(t *testing.T, jail *store.Jail, base string) int {
	t.Helper()
	versions, err := jail.Versions()
	require.NoError(t, err)
	if base != "" {
		require.Equal(t, base, versions[0].Version)
		require.True(t, versions[0].Current)
		require.Empty(t, verify(t, jail, versions[0]))
		versions = versions[1:]
	}
	for _, v := range versions {
		require.NoError(t, v.Err)
		require.Empty(t, verify(t, jail, v))
		require.NoError(t, jail.Remove(context.Background(), v.Version, func(*store.Version) error { return nil }))
	}
	return len(versions)
}

// TestBuildIsKilledAtAnyMoment: the next build removes what was left.
func TestBuildIsKilledAtAnyMoment(t *testing.T) {
	jail, dir := newJail(t)
	source := manyFiles(t)
	killAtAnyMoment(t, jail, dir, source, "")
	_, err := Build(context.Background(), jail, request(source))
	require.NoError(t, err)
	mustBeClean(t, dir)
	waitForNoChildren(t, dir)
}

// TestEditIsKilledAtAnyMoment: the version that is copied is as it was, and can be removed.
func TestEditIsKilledAtAnyMoment(t *testing.T) {
	for _, format := range []string{store.FormatDir, store.FormatSquashfs} {
		t.Run(format, func(t *testing.T) {
			jail, dir := newJail(t)
			if err := checkFormat(format); err != nil {
				t.Skip("needs a program: ", err)
			}
			r := request(manyFiles(t))
			r.Format = format
			base, err := Build(context.Background(), jail, r)
			require.NoError(t, err)
			_, err = jail.SwitchTo(context.Background(), base.Version, "me")
			require.NoError(t, err)
			killAtAnyMoment(t, jail, dir, editSource, base.Version)
			r.Format = store.FormatDir
			next, err := Build(context.Background(), jail, r)
			require.NoError(t, err)
			mustBeClean(t, dir)
			_, err = jail.SwitchTo(context.Background(), next.Version, "me")
			require.NoError(t, err)
			require.NoError(t, jail.Remove(context.Background(), base.Version, func(*store.Version) error { return nil }), "nobody copies it")
			waitForNoChildren(t, dir)
		})
	}
}

// waitForNoChildren waits until no process has its root in the store: children of a killed build die with it.
func waitForNoChildren(t *testing.T, dir string) {
	t.Helper()
	require.Eventually(t, func() bool {
		links, err := filepath.Glob("/proc/[0-9]*/root")
		require.NoError(t, err)
		for _, link := range links {
			if target, err := os.Readlink(link); err == nil && strings.HasPrefix(target, dir) {
				return false
			}
		}
		return true
	}, time.Minute, 20*time.Millisecond)
}
