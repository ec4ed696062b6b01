// SPDX-License-Identifier: Apache-2.0

package gojail

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/gojail/gojail/internal/slurmconf"
)

// slurmConf is what gojail wants to know from slurm.conf and plugstack.conf.
type slurmConf struct {
	dir       string            // where they are
	plugins   []string          // PluginDir
	plugstack []spankPlugin     // in Slurm's order
	ignored   []string          // lines of plugstack.conf that Slurm ignores, with their places
	values    map[string]string // slurm.conf, keys in lower case
}

// spankPlugin is one line of plugstack.conf.
type spankPlugin struct {
	path      string // the path that Slurm opens, or the name as written, which is in no plugin directory
	required  bool
	arguments []string
	at        string // file and line
}

// pluginName is the file name of gojail's own SPANK plugin.
const pluginName = "spank_gojail.so"

func readSlurmConf(c *Config) slurmConf {
	s := slurmConf{dir: c.Slurm.Conf, values: map[string]string{}}
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
	for i, p := range s.plugstack {
		s.plugstack[i].path = s.findPlugin(c, p.path)
	}
	return s
}

// findPlugin returns the path that Slurm opens for a plugin of plugstack.conf: a relative name
// is looked up in PluginDir (_spank_plugin_find in spank.c).
func (s *slurmConf) findPlugin(c *Config, name string) string {
	if filepath.IsAbs(name) {
		return filepath.Clean(name)
	}
	dirs := s.plugins
	if len(dirs) == 0 { // the built-in directory, which Slurm's commands name as their RUNPATH
		commands, _ := findCommands(c)
		for _, command := range commands {
			dirs = append(dirs, runpath(command)...)
		}
	}
	for _, dir := range dirs {
		if path := filepath.Join(dir, name); exists(path) {
			return path
		}
	}
	return name
}

// own returns the lines of plugstack.conf that name gojail's plugin.
func (s *slurmConf) own() []spankPlugin {
	var list []spankPlugin
	for _, p := range s.plugstack {
		if filepath.Base(p.path) == pluginName {
			list = append(list, p)
		}
	}
	return list
}

// argument returns the value of a plugin's argument NAME=VALUE with %n expanded; the last one counts.
func (p *spankPlugin) argument(name, standard, node string) string {
	value := standard
	for _, word := range p.arguments {
		if given, is := strings.CutPrefix(word, name+"="); is {
			value = given
		}
	}
	return strings.ReplaceAll(value, "%n", node)
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

// includeMax is how deep plugstack.conf may include files. Slurm has no limit of its own.
const includeMax = 8

// readPlugstack reads "required|optional PATH ARGUMENTS" and "include GLOB" as Slurm does: "#" begins a
// comment, and a backslash is a character like any other (_plugin_stack_parse_line in spank.c).
func (s *slurmConf) readPlugstack(path string, depth int) {
	text, err := os.ReadFile(path)
	if err != nil {
		return
	}
	number := 0
	for line := range strings.Lines(string(text)) {
		number++
		line, _, _ = strings.Cut(line, "#")
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		at := fmt.Sprintf("%s line %d", path, number)
		switch {
		case len(words) > 1 && words[0] == "include":
			files, _ := filepath.Glob(slurmconf.Beside(path, words[1]))
			for _, file := range files {
				if depth < includeMax {
					s.readPlugstack(file, depth+1)
				}
			}
		case len(words) > 1 && (words[0] == "required" || words[0] == "optional"):
			s.plugstack = append(s.plugstack, spankPlugin{words[1], words[0] == "required", words[2:], at})
		default:
			s.ignored = append(s.ignored, fmt.Sprintf("%s: %q", at, strings.TrimSpace(line)))
		}
	}
}

// standardSpool is SlurmdSpoolDir's default, slurm.conf(5).
const standardSpool = "/var/spool/slurmd"

// spoolDir is SlurmdSpoolDir: %n stands for the node's name, %h for its host's.
type spoolDir struct {
	dir  string
	host string
	from string // the slurm.conf that has it; "": none does
}

// readSpoolDir reads SlurmdSpoolDir from the slurm.conf in a directory, or from the copy that slurmd
// fetched. %h is NodeHostname, which is this host's own name.
func readSpoolDir(conf string) spoolDir {
	host, _, _ := strings.Cut(hostName(), ".")
	for _, dir := range []string{conf, runConf, filepath.Join(standardSpool, cacheName)} {
		path := filepath.Join(dir, "slurm.conf")
		if !exists(path) {
			continue
		}
		s := slurmConf{values: map[string]string{}}
		s.read(path)
		if value := s.values["slurmdspooldir"]; value != "" {
			return spoolDir{filepath.Clean(value), host, path}
		}
		break
	}
	return spoolDir{dir: standardSpool}
}

// confLines returns the lines of a file that say something; "#" begins a comment.
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
