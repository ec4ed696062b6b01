// SPDX-License-Identifier: Apache-2.0

package nhc

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/internal/trusted"
)

// FindObstacle returns why the program of the line cannot be run, nil if it can or the line runs none. It may hang with
// the program's file system.
func (l *Line) FindObstacle(s *System) error {
	if l.obstacle == nil {
		return nil
	}
	return l.obstacle(s)
}

// findObstacle returns why the command cannot be run.
func (p *program) findObstacle() error {
	name := p.argv[0]
	err := checkRunnable(name)
	path, _, blank := strings.Cut(name, " ")
	switch {
	case !blank || !errors.Is(err, unix.ENOENT):
		return err
	case p.output:
		return fmt.Errorf("%s: there is no program with that name; write -e '%s'", path, name)
	}
	return fmt.Errorf("%s: there is no program with that name; write %s without quotes", path, name)
}

// checkRunnable returns an error for a program that somebody other than root could replace, or that execve(2) refuses.
func checkRunnable(path string) error {
	if err := trusted.Parents(path); err != nil {
		return err
	}
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if err := trusted.Check(path, &st, unix.S_IFREG); err != nil {
		return err
	}
	if st.Mode&0o111 == 0 {
		return fmt.Errorf("%s: is not executable; run: chmod +x %s", path, path)
	}
	return checkFormat(path)
}

// checkFormat returns an error for a text without an interpreter. bash runs such a file as its own script.
func checkFormat(path string) error {
	file, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil // not readable, but perhaps executable
	}
	defer file.Close()
	begin := make([]byte, 256) // BINPRM_BUF_SIZE
	n, _ := file.Read(begin)
	line, ok := bytes.CutPrefix(begin[:n], []byte("#!"))
	if !ok {
		if bytes.HasPrefix(begin[:n], []byte("\x7fELF")) || bytes.IndexByte(begin[:n], 0) >= 0 {
			return nil
		}
		return fmt.Errorf("%s: is a text without an interpreter; write #!/bin/bash into its first line", path)
	}
	line, _, _ = bytes.Cut(line, []byte("\n"))
	words := bytes.Fields(line)
	if len(words) == 0 {
		return fmt.Errorf("%s: its first line names no interpreter", path)
	}
	if bytes.HasSuffix(line, []byte("\r")) {
		return fmt.Errorf("%s: its lines end with carriage returns; run: sed -i 's/\\r$//' %s", path, path)
	}
	if unix.Access(string(words[0]), unix.X_OK) != nil {
		return fmt.Errorf("%s: its interpreter %s cannot be run", path, words[0])
	}
	return nil
}
