// SPDX-License-Identifier: Apache-2.0

package gojail

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/gojail/gojail/internal/slurmconf"
)

// slurmConf is what gojail wants to know from slurm.conf and plugstack.conf.
type slurmConf struct {
	dir       string              // where they are
	plugins   []string            // PluginDir
	plugstack []string            // absolute paths of the SPANK plugins
	required  map[string]bool     // plugin path: "required" (true) or "optional"
	arguments map[string][]string // plugin path: what follows it
	values    map[string]string   // slurm.conf, keys in lower case
}

func readSlurmConf(c *Config) slurmConf {
	s := slurmConf{dir: c.Slurm.Conf, required: map[string]bool{}, arguments: map[string][]string{}, values: map[string]string{}}
	s.read(filepath.Join(c.Slurm.Conf, "slurm.conf"))
	for _, dir := range strings.Split(s.values["plugindir"], ":") {
		if filepath.IsAbs(dir) {
			s.plugins = append(s.plugins, filepath.Clean(dir))
		}
	}
	stack := s.values["plugstackconfig"]
	if !filepath.IsAbs(stack) {
		stack = filepath.Join(c.Slurm.Conf, "plugstack.conf")
	}
	s.readPlugstack(stack, 0)
	return s
}

// SlurmValue is a value of slurm.conf, "" where it has none.
func (c *Config) SlurmValue(key string) string { return readSlurmConf(c).values[strings.ToLower(key)] }

// read takes KEY=VALUE from lines with one key, as slurm.conf(5) has them for
// what concerns us.
func (s *slurmConf) read(path string) {
	lines, _ := slurmconf.Read(path) // gojail check tells of a slurm.conf that is not there
	for _, line := range lines {
		if key, value, ok := strings.Cut(line, "="); ok {
			s.values[strings.ToLower(strings.TrimSpace(key))] = strings.Trim(strings.TrimSpace(value), `"`)
		}
	}
}

// readPlugstack reads "required|optional PATH arguments" and "include GLOB", spank(8).
func (s *slurmConf) readPlugstack(path string, depth int) {
	for _, line := range confLines(path) {
		words := strings.Fields(line)
		if len(words) < 2 {
			continue
		}
		switch words[0] {
		case "include":
			files, _ := filepath.Glob(slurmconf.Beside(path, words[1]))
			for _, file := range files {
				if depth < 4 {
					s.readPlugstack(file, depth+1)
				}
			}
		case "required", "optional":
			if filepath.IsAbs(words[1]) {
				s.plugstack = append(s.plugstack, filepath.Clean(words[1]))
			}
			s.required[words[1]] = words[0] == "required"
			s.arguments[words[1]] = words[2:]
		}
	}
}

// confLines are the lines of a file that say something; "#" begins a comment.
func confLines(path string) []string {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	var lines []string
	for line := range strings.Lines(string(text)) {
		line, _, _ = strings.Cut(line, "#")
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	return lines
}
