// SPDX-License-Identifier: Apache-2.0

package nhc

import (
	"cmp"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
)

// FindSysconfig returns the path of the file that NHC sources before it reads that nhc.conf. It has the name of NHC,
// which is that of the nhc.conf by default (nhc -n).
func FindSysconfig(etc, conf string) string {
	exists := func(path string) bool { _, err := os.Stat(path); return err == nil }
	dir := filepath.Join(etc, "nhc/sysconfig")
	switch {
	case exists(filepath.Join(etc, "debian_version")):
		dir = filepath.Join(etc, "default")
	case exists(filepath.Join(etc, "sysconfig")):
		dir = filepath.Join(etc, "sysconfig")
	case exists(filepath.Join(etc, "default")):
		dir = filepath.Join(etc, "default")
	}
	name := strings.TrimSuffix(filepath.Base(conf), ".conf")
	if strings.HasPrefix(name, "nhc") && exists(filepath.Join(dir, name)) {
		return filepath.Join(dir, name)
	}
	return filepath.Join(dir, "nhc")
}

// ParseBoth parses the texts of NHC's sysconfig file and of its nhc.conf for the node with that host name. The settings
// of the first apply to all lines of the second.
func ParseBoth(path, sysconfig, conf, text, host string) []Line {
	s := newSettings()
	lines := s.parseSysconfig(sysconfig, conf)
	for i := range lines {
		lines[i].File = path
	}
	return append(lines, s.parse(text, host)...)
}

// parseSysconfig parses a file that NHC's bash sources. After a command that only bash can evaluate, such as "if",
// settings may apply or not: requests not to drain are kept, and none is taken back.
func (s *settings) parseSysconfig(text, conf string) (all []Line) {
	s.first = map[string]word{}
	unsure := false
	number, first, place := 0, 0, 1 // place: the line that may name an nhc.conf
	var joined strings.Builder
	for row := range strings.SplitSeq(strings.TrimPrefix(text, "\uFEFF"), "\n") {
		number++
		if joined.Len() == 0 {
			first = number
		}
		if trimmed := strings.TrimRight(row, `\`); (len(row)-len(trimmed))%2 == 1 {
			joined.WriteString(row[:len(row)-1])
			continue
		}
		joined.WriteString(row)
		command := strings.Trim(joined.String(), " \t")
		joined.Reset()
		if command == "" || command[0] == '#' || command == "\r" {
			continue
		}
		before := s.save()
		p := parser{settings: s}
		for _, l := range p.parseCheck(command) {
			if l.Number = first; strings.Contains(l.Text, "CONF") {
				place = first
			}
			l.Problem = strings.Replace(l.Problem, "write a check_* with plain words",
				"write NAME=value with a plain value", 1)
			l.Problem = strings.Replace(l.Problem, "unknown check ", "only NHC's bash runs ", 1)
			if unsure = unsure || !l.Setting; !l.Setting && exits().MatchString(command) {
				s.quiet["exit"] = true
				l.Problem += "; faults of nhc.conf do not drain, since NHC may end here"
			}
			all = append(all, l)
		}
		if unsure {
			found := s.variables
			s.restore(before)
			s.addRequests(found)
		}
	}
	all = append(all, s.compareConf(conf, place)...)
	s.first = nil
	return all
}

// exits matches what ends NHC.
var exits = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\b(?:exit|exec)\b`) })

// compareConf returns a line if the sysconfig file makes NHC read another nhc.conf than the one that is read here.
func (s *settings) compareConf(conf string, line int) []Line {
	file, dir, name := s.first["CONFFILE"], s.first["CONFDIR"], s.first["NAME"]
	l := Line{Number: line, Text: "CONFFILE"}
	path := cmp.Or(file.text, filepath.Join(cmp.Or(dir.text, "/etc/nhc"), cmp.Or(name.text, "nhc")+".conf"))
	switch {
	case file.text+file.bash+dir.text+dir.bash+name.text+name.bash == "":
		return nil
	case file.bash != "" || file.text == "" && dir.bash+name.bash != "":
		l.Problem = "only bash knows which nhc.conf NHC reads; gojail reads " + conf
	case filepath.Clean(path) != filepath.Clean(conf):
		l.Problem = "NHC reads " + path + ", and gojail " + conf + "; write nhc = \"" + path + "\" in health.toml"
	default:
		return nil
	}
	return []Line{l}
}
