// SPDX-License-Identifier: Apache-2.0

package layout

import (
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// mayImport is the order of imports: for each part of the tree, the parts that it may import. A part is a
// folder with all below it; the longest that fits a package counts. A part may import itself.
var mayImport = map[string][]string{
	"gojail/contract": {},
	"internal":        {"gojail/contract"},

	"gojail/cdi":       {"internal"},
	"gojail/seccomp":   {"internal"},
	"gojail/imagefile": {"internal"},
	"gojail/config":    {"gojail/contract", "gojail/cdi", "gojail/seccomp", "internal"},
	"gojail/node":      {"gojail/imagefile", "gojail/config", "gojail/contract", "gojail/cdi", "gojail/seccomp", "internal"},
	"gojail/plan":      {"gojail/node", "gojail/config", "gojail/contract", "gojail/cdi", "internal"},
	"gojail/state":     {"gojail/plan", "gojail/node", "gojail/config", "gojail/contract", "internal"},
	"gojail/site":      {"gojail/state", "gojail/plan", "gojail/node", "gojail/config", "gojail/contract", "gojail/cdi", "internal"},
	"gojail/mount":     {"gojail/state", "gojail/plan", "gojail/node", "gojail/config", "gojail/contract", "internal"},
	"gojail/subids":    {"gojail/config", "internal"},
	"gojail/sandbox":   {"gojail/subids", "gojail/site", "gojail/mount", "gojail/state", "gojail/plan", "gojail/node", "gojail/config", "gojail/contract", "internal"},
	"gojail/check":     {"gojail/store", "gojail/sandbox", "gojail/subids", "gojail/site", "gojail/mount", "gojail/state", "gojail/plan", "gojail/node", "gojail/config", "gojail/contract", "gojail/cdi", "gojail/seccomp", "internal"},
	"gojail/unpack":    {"gojail/contract", "gojail/seccomp", "internal"},
	"gojail/source":    {"gojail/contract", "internal"},
	"gojail/store":     {"gojail/contract", "internal"},
	"gojail/lease":     {"gojail/store", "gojail/state", "gojail/node", "gojail/config", "gojail/contract", "internal"},
	"gojail/metrics":   {"gojail/node", "gojail/site", "gojail/store", "gojail/state", "gojail/config", "gojail/contract", "internal"},
	"gojail/build":     {"gojail/source", "gojail/store", "gojail/unpack", "gojail/config", "internal"},
	"gojail/cli":       {"gojail", "netsetup", "internal"},
	"gojail/cmd":       {"gojail/cli"},

	"netsetup/config":    {"internal"},
	"netsetup/netns":     {"internal"},
	"netsetup/inventory": {"netsetup/config", "internal"},
	"netsetup/policy":    {"netsetup/inventory", "netsetup/config", "internal"},
	"netsetup/gres":      {"netsetup/policy", "netsetup/inventory", "netsetup/config", "internal"},
	"netsetup/link":      {"netsetup/netns", "netsetup/inventory", "netsetup/config", "internal"},
	"netsetup/provision": {"netsetup/policy", "netsetup/inventory", "netsetup/link", "netsetup/netns", "netsetup/config", "internal"},
	"netsetup/probe":     {"netsetup/link", "netsetup/netns", "netsetup/config", "internal"},
	"netsetup/pool":      {"netsetup/link", "netsetup/config", "internal"},
	"netsetup/fabric":    {"netsetup/link", "netsetup/config", "internal"},
	"netsetup/attach":    {"netsetup/provision", "netsetup/policy", "netsetup/probe", "netsetup/pool", "netsetup/fabric", "netsetup/link", "netsetup/netns", "netsetup/inventory", "netsetup/config", "internal"},
	"netsetup/job":       {"netsetup/attach", "netsetup/gres", "netsetup/fabric", "netsetup/link", "netsetup/netns", "netsetup/inventory", "netsetup/config", "internal"},
	"netsetup/fake":      {"netsetup/inventory", "netsetup/config", "internal"},

	"healthcheck/check":         {},
	"healthcheck/nvml":          {},
	"healthcheck/nhc":           {"healthcheck/check", "internal"},
	"healthcheck/checks":        {"healthcheck/config", "healthcheck/check", "healthcheck/nhc", "healthcheck/nvml", "gojail", "netsetup", "internal"},
	"healthcheck/nccl/settings": {"healthcheck/check", "internal"},
	"healthcheck/config":        {"healthcheck/nccl/settings", "healthcheck/check", "healthcheck/nhc", "gojail/contract", "netsetup/config", "internal"},
	"healthcheck/run":           {"healthcheck/checks", "healthcheck/check", "healthcheck/config", "internal"},
	"healthcheck/drain":         {"healthcheck/run", "healthcheck/checks", "healthcheck/check", "healthcheck/config", "internal"},
	"healthcheck/report":        {"healthcheck/drain", "healthcheck/run", "healthcheck/check", "healthcheck/config", "internal"},
	"healthcheck/nccl":          {"healthcheck/nccl/settings", "healthcheck/drain", "healthcheck/run", "healthcheck/check", "healthcheck/config", "internal"},
	"packaging":                 {"gojail/cli", "healthcheck", "exporter/cli", "internal"},
	"healthcheck/cli":           {"healthcheck", "gojail/config", "gojail/contract", "gojail/node", "netsetup/config", "internal"},
	"healthcheck/cmd":           {"healthcheck/cli"},
	"healthcheck":               {"internal"},

	"exporter/poll":   {"internal"},
	"exporter/series": {"exporter/poll", "internal"},
	"exporter/cli":    {"exporter", "internal"},
	"exporter/cmd":    {"exporter/cli"},
	"exporter":        {},

	"spank/bridge": {"gojail", "netsetup/job", "netsetup/config", "internal"},
	"gojail":       {},
	"tests":        {"exporter", "gojail", "netsetup", "healthcheck", "spank", "internal"},
}

// forTests are parts that only tests may import, whatever their part of the tree.
var forTests = []string{"internal/nstest", "internal/pagetest", "internal/metric/metrictest", "gojail/mount/mounttest", "gojail/state/statetest", "gojail/config/configtest", "gojail/source/sourcetest", "gojail/imagefile/imagefiletest", "netsetup/fake", "healthcheck/nvml", "tests/harness"}

// partOf returns the longest part of the table that holds a package.
func partOf(path string) (part string) {
	for p := range mayImport {
		if isBelow(path, p) && len(p) > len(part) {
			part = p
		}
	}
	return part
}

// top returns the first folder of a path.
func top(path string) string {
	first, _, _ := strings.Cut(path, "/")
	return first
}

func isBelow(path, dir string) bool { return path == dir || strings.HasPrefix(path, dir+"/") }

func isAllowed(from, to string, test bool) bool {
	below := func(dir string) bool { return isBelow(to, dir) }
	if slices.ContainsFunc(forTests, below) {
		return test || isBelow(from, "tests") || slices.ContainsFunc(forTests, func(dir string) bool { return isBelow(from, dir) })
	}
	part := partOf(from)
	return isBelow(to, part) && partOf(to) == part || slices.ContainsFunc(mayImport[part], below)
}

func TestImports(t *testing.T) {
	var found []string
	for _, p := range allPackages(t) {
		if !assert.NotEmpty(t, partOf(p.path), "%s is in no part of the table", p.path) {
			continue
		}
		refuse := func(imports []string, allowed func(to string) bool) {
			for _, to := range imports {
				if to, ours := strings.CutPrefix(to, module+"/"); ours && !allowed(to) {
					found = append(found, p.path+" must not import "+to)
				}
			}
		}
		refuse(p.Imports, func(to string) bool { return isAllowed(p.path, to, false) })
		// A test may use what is built on its package.
		refuse(slices.Concat(p.TestImports, p.XTestImports), func(to string) bool {
			return isAllowed(p.path, to, true) || top(to) == top(p.path)
		})
	}
	failEach(t, found)
}

// The drawing is for people, and does not have each edge; it has each part.
func TestDrawingHasEachPart(t *testing.T) {
	page, err := os.ReadFile("../../docs/architecture.md")
	require.NoError(t, err)
	_, drawing, found := strings.Cut(string(page), "## Order of imports")
	require.True(t, found)
	words := strings.FieldsFunc(drawing, func(r rune) bool { return strings.ContainsRune(" \n,`()", r) })
	parts := slices.Concat(slices.Collect(maps.Keys(mayImport)), slices.Collect(maps.Keys(mayInclude)))
	for _, part := range parts {
		_, name, isPart := strings.Cut(part, "/")
		named := slices.ContainsFunc(words, func(word string) bool { return word == part || isBelow(word, name) })
		assert.True(t, named || !isPart, "docs/architecture.md, order of imports: %s is missing", part)
	}
}

// What a plan says follows from what it is given: what it must know of the node is a fact of gojail/node, or is passed in.
func TestPlanIsPure(t *testing.T) {
	for _, p := range allPackages(t) {
		if p.path == "gojail/plan" {
			for _, effect := range []string{"os", "os/exec", "syscall", "golang.org/x/sys/unix", module + "/internal/rootpath"} {
				assert.NotContains(t, p.Imports, effect)
			}
			return
		}
	}
	assert.Fail(t, "there is no gojail/plan")
}

func TestImportTable(t *testing.T) {
	assert.True(t, isAllowed("gojail/plan", "gojail/node", false))
	assert.False(t, isAllowed("gojail/node", "gojail/plan", false), "against the order")
	assert.False(t, isAllowed("gojail/sandbox", "netsetup/job", false), "gojail and netsetup do not know each other")
	assert.False(t, isAllowed("gojail/mount", "internal/nstest", false), "it is for tests")
	assert.True(t, isAllowed("gojail/mount", "internal/nstest", true))
	for part, list := range mayImport {
		for _, to := range list {
			_, known := mayImport[to]
			assert.True(t, known || to == "netsetup" || to == "spank", "%s: %s is no part", part, to)
		}
	}
}
