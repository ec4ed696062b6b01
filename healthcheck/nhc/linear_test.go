// SPDX-License-Identifier: Apache-2.0

package nhc

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
)

// longFiles are files of n parts, of which each was once copied for each other part, or may be. %[1]d is its number.
var longFiles = []struct {
	name, sysconfig, conf string
	end                   string // of the file with the parts
}{
	{"settings of sysconfig", "NAME%[1]d=1\n", "", ""},
	{"read-only variables of sysconfig", "readonly NAME%[1]d=1\n", "", ""},
	{"settings after a command of bash", "if x%[1]d\nreadonly NAME%[1]d=1\n", "", ""},
	{"commands of a line of sysconfig", "NAME%[1]d=1; ", "", "\n"},
	{"rows of a line of sysconfig", "# comment %[1]d \\\n", "", "\n"},
	{"words of a line of sysconfig", "A%[1]d=$B ", "", "\n"},
	{"settings", "", "* || export NAME%[1]d=1\n", ""},
	{"read-only variables", "", "* || readonly NAME%[1]d=1\n", ""},
	{"read-only variables of a line", "", "* || readonly NAME%[1]d=1; ", "\n"},
	{"checks with settings", "", "* || NAME%[1]d=1 check_hw_eth eth%[1]d\n", ""},
	{"checks of a line", "", "* || check_hw_eth eth%[1]d && ", "true\n"},
	{"rows of a line", "", "* || check_hw_eth eth%[1]d \\\n", "\n"},
	{"lines for other nodes", "", "{n%[1]d,m%[1]d} || MARK_OFFLINE=0\n", ""},
	{"lines that are damaged", "", "/( || readonly NAME%[1]d=1\n", ""},
}

// The memory that a file takes grows with its length, and not with the square of it: a health check has seconds.
func TestLongFiles(t *testing.T) {
	const n, times = 300, 8
	for _, c := range longFiles {
		build := func(n int, part string) string {
			if part == "" {
				return ""
			}
			var text []byte
			for i := range n {
				text = fmt.Appendf(text, part, i)
			}
			return string(text) + c.end
		}
		measure := func(n int) float64 {
			sysconfig, conf := build(n, c.sysconfig), build(n, c.conf)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			ParseBoth("/s", sysconfig, "/etc/nhc/nhc.conf", conf, "node")
			runtime.ReadMemStats(&after)
			return float64(after.TotalAlloc - before.TotalAlloc)
		}
		measure(n) // compiles what is compiled once
		few, many := measure(n), measure(times*n)
		assert.Less(t, many/few, float64(2*times), "%s: %.0f bytes for %d, %.0f for %d", c.name, few, n, many, times*n)
	}
}
