// SPDX-License-Identifier: Apache-2.0

package check

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/gojail/gojail/gojail/config"
	"github.com/gojail/gojail/gojail/state"
	"github.com/gojail/gojail/gojail/store"
)

// versionPatience is how long a template may have another version than the current one before that is a warning: the
// next job replaces it.
const versionPatience = time.Hour

// checkVersion reports which version of the store a jail's template has, and whether the template was compared: there
// is nothing to compare if the jail has no store or no template.
func (c *checker) checkVersion(j *config.Jail) bool {
	file, current, err := c.findVersion(j)
	if err != nil || file == "" || current == "" {
		return false // another check says what is wrong with the root
	}
	f := Finding{Level: OK, Subject: "jail " + j.Name, Version: store.ID(file), Behind: file != current}
	dir := filepath.Dir(j.Root)
	_, gone := os.Lstat(filepath.Join(dir, "versions", file))
	link, _ := os.Lstat(j.Root)
	switch {
	case errors.Is(gone, fs.ErrNotExist):
		f.Level, f.Alert = Warn, true
		f.Found = "version " + f.Version +
			", which its template on this node has, is gone from the store: jobs that have it lose files"
		f.Remedy = "do not remove versions by hand; end these jobs, and run: gojail reload " + j.Name
	case !f.Behind:
		f.Found = "its template has version " + f.Version + ", the current one"
	default:
		f.Found = "its template has version " + f.Version + ", and version " + store.ID(current) + " is current"
		f.Remedy = "the next job gets a new template; to make it now: gojail reload " + j.Name
		if link != nil && time.Since(link.ModTime()) > versionPatience {
			f.Level, f.Alert = Warn, true
		}
	}
	c.report(f)
	return f.Behind || f.Alert
}

// findVersion returns the names in versions/ of what a jail's template has and of the current version, or nothing.
func (c *checker) findVersion(j *config.Jail) (file, current string, err error) {
	if j.Versions == "" {
		return "", "", nil
	}
	if _, err := os.Lstat(c.node.State); err != nil {
		return "", "", err
	}
	s, err := state.OpenState(c.node.State)
	if err != nil {
		return "", "", err
	}
	if _, err := s.Template(j.Name); err != nil {
		return "", "", err
	}
	noted, err := s.NotedVersions(j.Name)
	if err != nil || len(noted) != 1 { // of two it may be either
		return "", "", err
	}
	opened, err := store.Open(c.config.Store)
	if err != nil {
		return "", "", err
	}
	jail, err := opened.Jail(j.Versions)
	if err != nil {
		return "", "", err
	}
	current, err = jail.CurrentFile()
	return noted[0], current, err
}
