// SPDX-License-Identifier: Apache-2.0

package state

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/gojail/contract"
	"github.com/gojail/gojail/internal/oneline"
)

// NoteVersions notes the versions of the store that a jail's template may use. The caller holds the template's lock, or
// was started by the launcher that holds it.
func (s *State) NoteVersions(jail string, files []string) error {
	if err := os.MkdirAll(s.JailDir(jail), 0o700); err != nil {
		return fmt.Errorf("cannot create %s: %w; is the state directory full or read-only?", s.JailDir(jail),
			oneline.Cause(err))
	}
	return ReplaceFile(filepath.Join(s.JailDir(jail), contract.VersionsFile), strings.Join(files, "\n")+"\n")
}

// NotedVersions returns the versions that NoteVersions noted last.
func (s *State) NotedVersions(jail string) ([]string, error) {
	return readVersions(filepath.Join(s.JailDir(jail), contract.VersionsFile))
}

// SandboxVersions returns the versions that were noted for the template of which a sandbox was made. It returns none
// for a jail that is not of the store.
func (s *State) SandboxVersions(job, sandbox string) ([]string, error) {
	return readVersions(filepath.Join(s.JobDir(job), "."+sandbox+"."+contract.VersionsFile))
}

func readVersions(path string) ([]string, error) {
	text, err := readNotes(path)
	return strings.Fields(text), err
}

// readNotes returns what steps noted in a file, "" if there is none.
func readNotes(path string) (string, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if os.IsNotExist(err) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, 64<<10))
	return string(text), err
}
