// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/gojail/gojail/internal/oneline"
	"github.com/gojail/gojail/internal/trusted"
	"github.com/gojail/gojail/internal/wholefile"
)

// staleAfter is the age at which a file that cannot be replaced is removed. Its jobs may have ended: a missing metric
// is noticed, and a wrong one is not.
const staleAfter = time.Minute

// WriteFile replaces the file of the textfile collector. It requires that only root can write the directory, because it
// opens a file beside that name as root. It does not sync the text, which is wrong after a crash of the node anyway.
func WriteFile(path string, text []byte) error {
	if !strings.HasSuffix(path, ".prom") {
		return fmt.Errorf("cannot write the metrics: %s does not end in .prom, so node_exporter would not read it",
			path)
	}
	err := trusted.Parents(path)
	if err == nil {
		err = wholefile.Write(path, text, 0o644)
	}
	if err != nil {
		return fmt.Errorf("cannot write the metrics %s: %w", path, oneline.Cause(err))
	}
	return nil
}

// RemoveStale removes the file if it is out of date, after a run that failed with err, and returns err with a note of
// that. Whatever the reason is, a file that nobody replaces names jobs that have ended. RemoveStale removes only a file
// of that very name, even if its directory is not root's.
func RemoveStale(path string, err error) error {
	if info, e := os.Lstat(path); e == nil && strings.HasSuffix(path, ".prom") && info.Mode().IsRegular() &&
		isStale(info.ModTime(), time.Now()) && os.Remove(path) == nil {
		return fmt.Errorf("%w; the file %s, which was out of date, is removed", err, path)
	}
	return err
}

// isStale reports whether a file is older than staleAfter. A time in the future counts as old: the clock was set back
// since the file was written.
func isStale(written, now time.Time) bool {
	age := now.Sub(written)
	return age >= staleAfter || age < 0
}
