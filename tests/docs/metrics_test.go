// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// readSource returns the text of a file of the repository.
func readSource(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(repository, path))
	require.NoError(t, err)
	return string(text)
}

var (
	collectorPattern = regexp.MustCompile(`--collector\.textfile\.directory=([^"\s]+)`)
	stateDirectory   = regexp.MustCompile(`(?m)^StateDirectory=(\S+)$`)
	metricsFile      = regexp.MustCompile(`(?m)^\s*(?:#: )?metrics = "([^"]+)"$|--output[= ](/\S+\.prom)`)
)

// TestFilesOfMetricsAreCollected requires that the files of metrics that examples, the unit and the help name are in a directory that a
// unit of gojail's creates, as root's, and that node_exporter reads where it is set up as docs/metrics.md says.
func TestFilesOfMetricsAreCollected(t *testing.T) {
	collected := collectorPattern.FindStringSubmatch(readSource(t, "docs/metrics.md"))
	require.NotNil(t, collected)
	unit := readSource(t, "packaging/systemd/gojail-metrics.service")
	created := stateDirectory.FindStringSubmatch(unit)
	require.NotNil(t, created)
	for path, want := range map[string]int{
		"health.toml.example": 2, "docs/health.md": 1, "packaging/systemd/gojail-metrics.service": 1, "gojail/cli/metrics.go": 1,
	} {
		text := readSource(t, path)
		if text == unit {
			text = regexp.MustCompile(`(?m)^#.*$`).ReplaceAllString(text, "") // a comment has the path of a site without the directory
		}
		found := metricsFile.FindAllStringSubmatch(text, -1)
		assert.Len(t, found, want, path)
		for _, m := range found {
			dir := filepath.Dir(m[1] + m[2])
			matches, err := filepath.Match(collected[1], dir)
			require.NoError(t, err)
			assert.True(t, matches, "%s: node_exporter does not read %s (%s)", path, dir, collected[1])
			assert.Equal(t, "/var/lib/"+created[1], dir, "%s: no unit of gojail's creates it", path)
		}
	}
}

// How sources of the health checks name metrics, and what comes before the name.
var namings = map[*regexp.Regexp]string{
	regexp.MustCompile(`\bName: "(\w+)",\s+(?:Help|Value): `):       "", // check.Metric
	regexp.MustCompile(`\bone\("(\w+)",\s+"`):                       "", // report.listRunMetrics
	regexp.MustCompile(`\.addMetric\(g,\s+"(\w+)",\s+"`):            "gpu_",
	regexp.MustCompile(`(?m)^\s*add\("(\w+)",\s+"[^"]+",\s+[^)\s]`): "nccl_",
}

// computedName matches the name of a metric that is no literal; computedNames are those that namings find where they are passed.
var (
	computedName  = regexp.MustCompile(`\bName: ([^"\s][^,]*|"\w*" \+ [^,]*),\s+(?:Help|Value): `)
	computedNames = []string{"name", `"gpu_" + name`, `"nccl_" + name`}
)

// TestHealthMetricsAreOnThePage requires that the tables of docs/health.md have each metric of the health checks, and no other.
func TestHealthMetricsAreOnThePage(t *testing.T) {
	var written []string
	for _, dir := range []string{"checks", "nccl", "report"} {
		files, err := filepath.Glob(filepath.Join(repository, "healthcheck", dir, "*.go"))
		require.NoError(t, err)
		require.NotEmpty(t, files, dir)
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			for naming, prefix := range namings {
				for _, m := range naming.FindAllSubmatch(text, -1) {
					written = append(written, "gojail_health_"+prefix+string(m[1]))
				}
			}
			for _, m := range computedName.FindAllSubmatch(text, -1) {
				assert.Contains(t, computedNames, string(m[1]), "%s: this test does not know this way to name a metric", file)
			}
		}
	}
	var documented []string
	for line := range strings.Lines(readSource(t, "docs/health.md")) {
		if cells := strings.Split(line, "|"); len(cells) == 5 {
			for _, m := range regexp.MustCompile("`(gojail_health_[a-z_]+)`").FindAllStringSubmatch(cells[1], -1) {
				documented = append(documented, m[1])
			}
		}
	}
	slices.Sort(written)
	slices.Sort(documented)
	assert.Equal(t, written, documented)
}

// TestPrometheusAcceptsItsConfiguration has promtool read what the pages have for prometheus.yml.
func TestPrometheusAcceptsItsConfiguration(t *testing.T) {
	if _, err := exec.LookPath("promtool"); err != nil {
		t.Skip("tests/deps.sh installs prometheus, which has promtool")
	}
	count := 0
	for _, p := range pages(t) {
		for _, b := range p.blocks {
			if b.language != "yaml" || !strings.Contains(b.text, "scrape_configs:") {
				continue
			}
			count++
			file := filepath.Join(t.TempDir(), "prometheus.yml")
			require.NoError(t, os.WriteFile(file, []byte(b.text), 0o644))
			out, err := exec.Command("promtool", "check", "config", file).CombinedOutput()
			assert.NoError(t, err, "%s:%d: %s", p.path, b.number, out)
		}
	}
	assert.NotZero(t, count)
}
