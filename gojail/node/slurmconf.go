// SPDX-License-Identifier: Apache-2.0

package node

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/gojail/gojail/gojail/config"
	"github.com/gojail/gojail/gojail/contract"
	"github.com/gojail/gojail/internal/rootpath"
	"github.com/gojail/gojail/internal/slurmconf"
)

// SlurmConf is the part of slurm.conf and plugstack.conf that gojail needs.
type SlurmConf struct {
	Dir       string            // their directory
	Plugins   []string          // PluginDir
	Plugstack []SpankPlugin     // in Slurm's order
	Files     []string          // plugstack.conf and those that it includes; the first need not exist
	Comments  []SpankPlugin     // comments of these files that would name a plugin as lines
	Ignored   []IgnoredLine     // lines of plugstack.conf that Slurm ignores
	Prologs   []string          // each Prolog of slurm.conf, which may be a pattern
	Values    map[string]string // slurm.conf, with keys in lower case
}

// SpankPlugin is one line of plugstack.conf.
type SpankPlugin struct {
	Path      string // path that Slurm opens; if no plugin directory has the plugin, the name as written
	Required  bool
	Arguments []string
	At        string // file and line
}

// IgnoredLine is a line of plugstack.conf that Slurm ignores.
type IgnoredLine struct{ Text, At string }

// ReadSlurmConf reads slurm.conf and plugstack.conf.
func ReadSlurmConf(c *config.Config) SlurmConf {
	s := SlurmConf{Dir: c.Slurm.Conf, Values: map[string]string{}}
	s.readFile(filepath.Join(c.Slurm.Conf, "slurm.conf"))
	for _, dir := range strings.Split(s.Values["plugindir"], ":") {
		if filepath.IsAbs(dir) {
			s.Plugins = append(s.Plugins, filepath.Clean(dir))
		}
	}
	stack := s.Values["plugstackconfig"]
	if !filepath.IsAbs(stack) {
		stack = filepath.Join(c.Slurm.Conf, "plugstack.conf")
	}
	s.readPlugstack(stack, 0)
	for i, p := range s.Plugstack {
		s.Plugstack[i].Path = s.findPlugin(c, p.Path)
	}
	return s
}

// findPlugin returns the path that Slurm opens for a plugin of plugstack.conf. A relative name is
// searched in PluginDir (_spank_plugin_find in spank.c).
func (s *SlurmConf) findPlugin(c *config.Config, name string) string {
	if filepath.IsAbs(name) {
		return filepath.Clean(name)
	}
	dirs := s.Plugins
	if len(dirs) == 0 { // the built-in directory, which Slurm's commands name as their RUNPATH
		commands, _ := FindCommands(c)
		dirs = findPluginDirs(commands, nil, listLibDirs())
	}
	for _, dir := range dirs {
		if path := filepath.Join(dir, name); rootpath.Exists(path) {
			return path
		}
	}
	return name
}

// Beside returns the path of a program of slurm.conf, which is relative to slurm.conf's directory.
func (s *SlurmConf) Beside(path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(s.Dir, path)
}

// GojailPlugins returns the lines of plugstack.conf that name gojail's plugin.
func (s *SlurmConf) GojailPlugins() []SpankPlugin {
	var list []SpankPlugin
	for _, p := range s.Plugstack {
		if filepath.Base(p.Path) == contract.Plugin {
			list = append(list, p)
		}
	}
	return list
}

// Argument returns the value of a plugin's argument NAME=VALUE with %n expanded; the last one takes
// precedence.
func (p *SpankPlugin) Argument(name, standard, node string) string {
	value := standard
	for _, word := range p.Arguments {
		if given, ok := strings.CutPrefix(word, name+"="); ok {
			value = given
		}
	}
	return strings.ReplaceAll(value, "%n", node)
}

// SlurmValue returns the value of a key in slurm.conf, or "" if it is not set.
func SlurmValue(c *config.Config, key string) string {
	return ReadSlurmConf(c).Values[strings.ToLower(key)]
}

// readFile stores KEY=VALUE of the lines with one key, the form of all keys in slurm.conf(5) that gojail
// needs.
func (s *SlurmConf) readFile(path string) {
	lines, _ := slurmconf.Read(path) // gojail check reports a missing slurm.conf
	for _, line := range lines {
		if key, value, found := slurmconf.Cut(line); found {
			s.Values[key] = value
			if key == "prolog" {
				s.Prologs = append(s.Prologs, value)
			}
		}
	}
}

// includeMax is the limit of nested includes in plugstack.conf. Slurm has none.
const includeMax = 8

// readPlugstack parses "required|optional PATH ARGUMENTS" and "include GLOB" as Slurm does: "#" begins a
// comment, and a backslash has no special meaning (_plugin_stack_parse_line in spank.c).
func (s *SlurmConf) readPlugstack(path string, depth int) {
	s.Files = append(s.Files, path)
	text, err := os.ReadFile(path)
	if err != nil {
		return
	}
	number := 0
	for line := range strings.Lines(string(text)) {
		number++
		line, comment, _ := strings.Cut(line, "#")
		words := strings.Fields(line)
		at := fmt.Sprintf("%s line %d", path, number)
		if len(words) == 0 {
			if words = strings.Fields(comment); len(words) > 1 && words[0] == "required" {
				s.Comments = append(s.Comments, SpankPlugin{words[1], true, words[2:], at})
			}
			continue
		}
		switch {
		case len(words) > 1 && words[0] == "include":
			files, _ := filepath.Glob(slurmconf.Beside(path, words[1]))
			for _, file := range files {
				if depth < includeMax {
					s.readPlugstack(file, depth+1)
				}
			}
		case len(words) > 1 && (words[0] == "required" || words[0] == "optional"):
			s.Plugstack = append(s.Plugstack, SpankPlugin{words[1], words[0] == "required", words[2:], at})
		default:
			s.Ignored = append(s.Ignored, IgnoredLine{strings.TrimSpace(line), at})
		}
	}
}

// readSpoolDir reads SlurmdSpoolDir from the slurm.conf in a directory, or from the copy that slurmd
// fetched. %h is NodeHostname, which is the name of this host.
func readSpoolDir(conf string) config.SpoolDir {
	host := HostName()
	for _, dir := range []string{conf, RunConf, filepath.Join(config.StandardSpool, contract.CacheLink)} {
		path := filepath.Join(dir, "slurm.conf")
		if !rootpath.Exists(path) {
			continue
		}
		if value := slurmconf.ReadKeys(path)["slurmdspooldir"]; value != "" {
			return config.SpoolDir{Dir: filepath.Clean(value), Host: host, From: path}
		}
		break
	}
	return config.SpoolDir{Dir: config.StandardSpool}
}

// ConfLines returns the lines of a file without comments, which begin with "#", and without empty lines.
func ConfLines(path string) []string {
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
