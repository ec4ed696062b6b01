// SPDX-License-Identifier: Apache-2.0

// Package packaging tests the version that the sources say.
package packaging

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// sources are a repository with packaging/version and a CHANGELOG.md.
type sources struct {
	t   *testing.T
	dir string
}

func newSources(t *testing.T) *sources {
	script, err := os.ReadFile("version")
	require.NoError(t, err)
	s := &sources{t, t.TempDir()}
	require.NoError(t, os.Mkdir(filepath.Join(s.dir, "packaging"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(s.dir, "packaging/version"), script, 0o755))
	return s
}

func (s *sources) run(name string, args ...string) string {
	s.t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir = s.dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b")
	out, err := cmd.CombinedOutput()
	require.NoError(s.t, err, "%s", out)
	return strings.TrimSpace(string(out))
}

// write writes the CHANGELOG.md with these headings, newest first.
func (s *sources) write(headings ...string) {
	s.t.Helper()
	text := "# Changelog\n"
	for _, heading := range headings {
		text += "\n## " + heading + "\n"
	}
	require.NoError(s.t, os.WriteFile(filepath.Join(s.dir, "CHANGELOG.md"), []byte(text), 0o644))
}

// commit commits all, and returns the version with HASH in the place of the commit's.
func (s *sources) commit(headings ...string) string {
	s.t.Helper()
	s.write(headings...)
	s.run("git", "add", "-A")
	s.run("git", "commit", "-q", "--allow-empty", "-m", "c")
	return strings.ReplaceAll(s.run("packaging/version"), s.run("git", "rev-parse", "HEAD")[:7], "HASH")
}

// TestVersion tells any two commits apart, in the order in which they came, as dpkg has it.
func TestVersion(t *testing.T) {
	s := newSources(t)
	s.run("git", "init", "-q")
	const old = "0.1.0 — 2026-11-26"
	steps := []struct {
		headings []string
		want     string
	}{
		{[]string{"Contract 1 — 2026-11-21"}, "0.1.0~git1.HASH"},
		{[]string{"0.1.0 — unreleased"}, "0.1.0~git2.HASH"},
		{[]string{old}, "0.1.0"},
		{[]string{old}, "0.1.0+git4.HASH"},
		{[]string{"0.2.0 (unreleased)", old}, "0.2.0~git5.HASH"},
		{[]string{"0.2.0 (unreleased)", old}, "0.2.0~git6.HASH"},
		{[]string{"0.2.0 (2026-12-01)", old}, "0.2.0"},
		{[]string{"0.2.1 (unreleased)", "0.2.0 (2026-12-01)", old}, "0.2.1~git8.HASH"},
	}
	var versions []string
	for i, step := range steps {
		assert.Equal(t, step.want, s.commit(step.headings...), "commit %d", i+1)
		versions = append(versions, s.run("packaging/version"))
	}
	assert.Equal(t, versions[4], s.run("packaging/version", "HEAD~3"), "of an earlier commit")
	if _, err := exec.LookPath("dpkg"); err != nil {
		t.Skip("needs dpkg")
	}
	for i := range versions[1:] {
		s.run("dpkg", "--compare-versions", versions[i]+"-1", "lt", versions[i+1]+"-1")
	}
	assert.False(t, slices.ContainsFunc(versions, func(v string) bool { return strings.ContainsAny(v, "-_ ") }), "rpm has no hyphens in a version")
}

// TestVersionOfMerges: a merge of the release is not the release, whichever parent it is.
func TestVersionOfMerges(t *testing.T) {
	s := newSources(t)
	s.run("git", "init", "-q", "-b", "main")
	s.commit("0.2.0 (unreleased)")
	s.run("git", "checkout", "-q", "-b", "release")
	assert.Equal(t, "0.2.0", s.commit("0.2.0 (2026-12-01)"))
	s.run("git", "checkout", "-q", "main")
	s.commit("0.2.0 (unreleased)")
	s.run("git", "merge", "-q", "--no-ff", "-m", "m", "release")
	assert.Regexp(t, `^0\.2\.0\+git4\.`, s.run("packaging/version"))
	assert.Equal(t, "0.2.0", s.run("packaging/version", "release"))
}

// TestVersionOfShallowClone: where the history ends, no commit passes for the release.
func TestVersionOfShallowClone(t *testing.T) {
	s := newSources(t)
	s.run("git", "init", "-q")
	s.commit("0.2.0 (unreleased)")
	for _, headings := range []string{"0.2.0 (unreleased)", "0.2.0 (2026-12-01)"} {
		s.commit(headings)
		s.commit(headings)
		clone := &sources{t, filepath.Join(t.TempDir(), "clone")}
		s.run("git", "clone", "-q", "--depth", "1", "file://"+s.dir, clone.dir)
		hash := s.run("git", "rev-parse", "HEAD")[:7]
		sign := map[bool]string{true: "~", false: "+"}[strings.Contains(headings, "un")]
		assert.Equal(t, "0.2.0"+sign+"git0."+hash, clone.run("packaging/version"))
	}
}

// TestUnreadableHeadings: none makes the sources those of the release below it.
func TestUnreadableHeadings(t *testing.T) {
	for _, heading := range []string{"0.3.0", "0.3.0 - 2026-12-01", "v0.3.0 (2026-12-01)", "0.3 (2026-12-01)", "0.3.0 (2026-12-1)", "0.3.0 (soon)", "0.3.0(2026-12-01)"} {
		for _, repository := range []bool{true, false} {
			s := newSources(t)
			s.write(heading, "0.2.0 (2026-11-28)")
			if repository {
				s.run("git", "init", "-q")
				s.run("git", "add", "-A")
				s.run("git", "commit", "-q", "-m", "c")
			}
			cmd := exec.Command("packaging/version")
			cmd.Dir = s.dir
			out, err := cmd.CombinedOutput()
			assert.Error(t, err, "%s: %s", heading, out)
			assert.Contains(t, string(out), `the heading "## `+heading+`" of CHANGELOG.md names no release`, "%v", repository)
		}
	}
}

// TestVersionsOfThisRepository: in the real history commits on the way to a release, the release and those after it have versions that
// dpkg orders as they came.
func TestVersionsOfThisRepository(t *testing.T) {
	s := &sources{t, ".."}
	if _, err := os.Stat("../.git"); err != nil || s.run("git", "rev-parse", "--is-shallow-repository") != "false" {
		t.Skip("needs a clone of the repository with its history")
	}
	commits := strings.Fields(s.run("git", "rev-list", "--reverse", "--first-parent", "HEAD"))
	touched := s.run("git", "log", "--format=%H", "-G^## [0-9]", "--", "CHANGELOG.md")
	var versions []string
	for i, commit := range commits {
		next := commits[min(i+1, len(commits)-1)]
		if i%20 == 0 && i > 800 || i > len(commits)-3 || strings.Contains(touched, commit) || strings.Contains(touched, next) {
			versions = append(versions, s.run("packaging/version", commit))
		}
	}
	require.Greater(t, len(versions), 4)
	for i := range versions[1:] {
		s.run("dpkg", "--compare-versions", versions[i], "lt", versions[i+1])
	}
}

// TestVersionOfChangedFiles: what differs from the commit does not have the version of the commit.
func TestVersionOfChangedFiles(t *testing.T) {
	s := newSources(t)
	s.run("git", "init", "-q")
	s.commit("0.2.0 (unreleased)")
	before := s.run("packaging/version")
	s.write("0.2.0 (unreleased)", "0.1.0 — 2026-11-26")
	assert.Equal(t, before+".local", s.run("packaging/version"))
	assert.Equal(t, "0.2.0", s.commit("0.2.0 (2026-12-01)"))
	s.write("0.2.0 (2026-12-01)", "0.1.0 — 2026-11-26")
	assert.Equal(t, fmt.Sprintf("0.2.0+git2.%s.local", s.run("git", "rev-parse", "HEAD")[:7]), s.run("packaging/version"))
}

// TestVersionWithoutRepository: of a tarball it is the one that make dist wrote, also where that is unpacked inside another repository.
func TestVersionWithoutRepository(t *testing.T) {
	s := newSources(t)
	s.write("0.2.0 (unreleased)")
	assert.Equal(t, "0.2.0~git0.unknown", s.run("packaging/version"))
	s.write("0.2.0 (2026-12-01)")
	assert.Equal(t, "0.2.0", s.run("packaging/version"))
	require.NoError(t, os.WriteFile(filepath.Join(s.dir, ".version"), []byte("0.2.0~git7.1234567\n"), 0o644))
	assert.Equal(t, "0.2.0~git7.1234567", s.run("packaging/version"))
	s.run("git", "-C", "..", "init", "-q")
	assert.Equal(t, "0.2.0~git7.1234567", s.run("packaging/version"))
}
