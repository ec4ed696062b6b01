// SPDX-License-Identifier: Apache-2.0

package procfs

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// ReadMeminfo returns the values of /proc/meminfo by their keys: sizes in KiB, and numbers of huge pages
// (proc_meminfo(5)). A line that cannot be parsed is left out. proc is "/proc".
func ReadMeminfo(proc string) (map[string]int64, error) {
	text, err := os.ReadFile(filepath.Join(proc, "meminfo"))
	if err != nil {
		return nil, err
	}
	values := map[string]int64{}
	for row := range strings.Lines(string(text)) {
		key, value, _ := strings.Cut(row, ":")
		number, unit, _ := strings.Cut(strings.TrimSpace(value), " ")
		n, err := strconv.ParseInt(number, 10, 64)
		if err == nil && n >= 0 && (unit == "" || unit == "kB") {
			values[key] = n
		}
	}
	return values, nil
}
