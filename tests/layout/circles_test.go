// SPDX-License-Identifier: Apache-2.0

package layout

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// findCircle returns the units of a circle of includes, from one of them back to it, or nil. uses has, for each unit
// (name.c and name.h are one), the units whose headers it includes.
func findCircle(uses map[string][]string) []string {
	var path []string
	done := map[string]bool{}
	var visit func(unit string) []string
	visit = func(unit string) []string {
		if at := slices.Index(path, unit); at >= 0 {
			return append(slices.Clone(path[at:]), unit)
		}
		if done[unit] {
			return nil
		}
		done[unit] = true
		path = append(path, unit)
		for _, used := range uses[unit] {
			if circle := visit(used); circle != nil {
				return circle
			}
		}
		path = path[:len(path)-1]
		return nil
	}
	for _, unit := range slices.Sorted(maps.Keys(uses)) {
		if circle := visit(unit); circle != nil {
			return circle
		}
	}
	return nil
}

// TestNoCircleOfIncludes: of two C units at most one includes the other, directly or by others, so that each can be
// read, and tried, with those below it alone.
func TestNoCircleOfIncludes(t *testing.T) {
	files, err := filepath.Glob("../../spank/*/*.[ch]")
	require.NoError(t, err)
	require.Greater(t, len(files), 40)
	uses := map[string][]string{}
	for _, path := range files {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		unit := strings.TrimPrefix(strings.TrimSuffix(path, filepath.Ext(path)), "../../spank/")
		for _, match := range includeLine.FindAllStringSubmatch(string(text), -1) {
			if used := strings.TrimSuffix(match[1], ".h"); used != unit {
				uses[unit] = append(uses[unit], used)
			}
		}
	}
	assert.Empty(t, findCircle(uses), "move what both need to a unit below both, or make them one")
}

func TestFindCircle(t *testing.T) {
	for name, row := range map[string]struct {
		uses   map[string][]string
		circle []string
	}{
		"none":    {map[string][]string{"a": {"b", "c"}, "b": {"c", "d"}, "c": {"d"}}, nil},
		"of two":  {map[string][]string{"a": {"b"}, "b": {"a"}}, []string{"a", "b", "a"}},
		"far off": {map[string][]string{"a": {"b"}, "b": {"c", "d"}, "d": {"e"}, "e": {"f"}, "f": {"d"}}, []string{"d", "e", "f", "d"}},
	} {
		assert.Equal(t, row.circle, findCircle(row.uses), name)
	}
}
