// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/gojail/gojail/internal/oneline"
	"github.com/gojail/gojail/internal/trusted"
	"github.com/gojail/gojail/internal/wholefile"
)

// mappingName matches the names of dcgm-exporter's job mapping files: the index of a GPU, or of a GPU and a GPU
// instance (internal/pkg/transformation/hpc.go there).
var mappingName = regexp.MustCompile(`^[0-9]+(\.[0-9]+)?$`)

// WriteJobMapping replaces the files in the directory from which dcgm-exporter reads jobs (--hpc-job-mapping-dir): one
// for each GPU that has jobs, with a job on each line. It removes the files of GPUs without jobs, and gives the others
// the time of this run. The directory must be gojail's alone, because gojail does not know jobs that are not in a jail.
func (f *Facts) WriteJobMapping(dir string) error {
	fail := func(err error) error {
		return fmt.Errorf("cannot write the job mapping of dcgm-exporter in %s: %w", dir, oneline.Error(err))
	}
	if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return fail(oneline.Cause(err))
	}
	if err := trusted.Parents(filepath.Join(dir, "0")); err != nil {
		return fail(err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fail(oneline.Cause(err))
	}
	var errs []error
	wanted, now := f.mapJobs(), time.Now()
	for name, text := range wanted {
		path := filepath.Join(dir, name)
		if have, err := os.ReadFile(path); err != nil || string(have) != text {
			errs = append(errs, wholefile.Write(path, []byte(text), 0o644))
		} else {
			errs = append(errs, os.Chtimes(path, now, now))
		}
	}
	for _, e := range entries {
		if _, ok := wanted[e.Name()]; !ok && mappingName.MatchString(e.Name()) {
			errs = append(errs, os.Remove(filepath.Join(dir, e.Name())))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return fail(err)
	}
	return nil
}

// RemoveStaleMapping removes the files of a job mapping that are out of date, after a run that failed with err, and
// returns err with a note of that. Like the file of RemoveStale, they name jobs that may have ended. It removes nothing
// from a directory that is not root's.
func RemoveStaleMapping(dir string, err error) error {
	if trusted.Parents(filepath.Join(dir, "0")) != nil {
		return err
	}
	entries, _ := os.ReadDir(dir)
	removed := 0
	for _, entry := range entries {
		info, e := entry.Info()
		if e == nil && mappingName.MatchString(entry.Name()) && info.Mode().IsRegular() &&
			isStale(info.ModTime(), time.Now()) &&
			os.Remove(filepath.Join(dir, entry.Name())) == nil {
			removed++
		}
	}
	if removed > 0 {
		return fmt.Errorf("%w; %d files of the job mapping in %s, which were out of date, are removed", err, removed,
			dir)
	}
	return err
}

// mapJobs returns the text of each file by its name. A GPU whose index is unknown has no file.
func (f *Facts) mapJobs() map[string]string {
	lines := map[string][]string{}
	for _, j := range f.jobs {
		for _, g := range j.gpus {
			name := strings.TrimSuffix(g.index+"."+g.instance, ".")
			if g.index != "" && !slices.Contains(lines[name], j.id) {
				lines[name] = append(lines[name], j.id)
			}
		}
	}
	files := map[string]string{}
	for name, jobs := range lines {
		files[name] = strings.Join(jobs, "\n") + "\n"
	}
	return files
}
