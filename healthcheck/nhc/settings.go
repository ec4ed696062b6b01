// SPDX-License-Identifier: Apache-2.0

package nhc

import (
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// settings are NHC's own variables while its lines are read in order, as far as they decide whether a fault drains the
// node. A line asks not to drain with MARK_OFFLINE, or with another program in the place of NHC's.
type settings struct {
	variables
	frozen map[string]bool // variables that are read-only from here on
	order  []string        // the same, in the order of the file
}

// variables are those of a few names, however long the file is.
type variables struct {
	quiet map[string]bool // variables that ask not to drain from here on
	first map[string]word // of confVariables, those of the sysconfig file while it is read; nil: nhc.conf is read
}

func newSettings() *settings {
	return &settings{variables: variables{quiet: map[string]bool{}}, frozen: map[string]bool{}}
}

// saved is what restore needs. Its size, and the time that it takes, do not grow with the file.
type saved struct {
	variables
	frozen int
}

// save returns the settings of this place, for a command that may turn out not to apply.
func (s *settings) save() saved {
	return saved{variables{maps.Clone(s.quiet), maps.Clone(s.first)}, len(s.order)}
}

// restore takes back what changed since save.
func (s *settings) restore(before saved) {
	s.variables = before.variables
	for _, name := range s.order[before.frozen:] {
		delete(s.frozen, name)
	}
	s.order = s.order[:before.frozen]
}

// freeze makes a variable read-only.
func (s *settings) freeze(name string) {
	if !s.frozen[name] {
		s.frozen[name] = true
		s.order = append(s.order, name)
	}
}

// drains reports whether a fault found here drains the node.
func (s *settings) drains() bool { return len(s.quiet) == 0 }

// addRequests takes over the requests of other settings not to drain. It is for a line that may not apply to this node.
func (s *settings) addRequests(other variables) { maps.Copy(s.quiet, other.quiet) }

// confVariables are the variables of the sysconfig file that choose the nhc.conf.
var confVariables = []string{"CONFFILE", "CONFDIR", "NAME"}

// harmless are the variables of NHC that do not change a finding: how NHC runs and logs, what its helpers are, where
// they find the resource manager, and what belongs to checks that are not supported here. The name of the node
// (HOSTNAME) is that in slurm.conf.
var harmless = []string{
	"NHC_CHECK_ALL", "NHC_CHECK_FORKED", "DEBUG", "VERBOSE", "SILENT", "TS", "TIMEOUT", "LOGFILE", "RESULTFILE",
	"DETACHED_MODE",
	"DETACHED_MODE_FAIL_NODATA", "FORCE_SETSID", "EVAL_LINE", "CONFDIR", "CONFFILE", "INCDIR", "HELPERDIR", "NAME",
	"HOSTNAME",
	"HOSTNAME_S", "ONLINE_NODE", "MOUNT_CMD", "STAT_CMD", "STAT_FMT_ARGS", "NETSTAT_CMD", "NETSTAT_ARGS", "SS_CMD",
	"SS_ARGS",
	"SLURM_SINFO", "SLURM_SCONTROL", "SLURM_SC_ONLINE_ARGS", "SLURM_SERVER_HOME", "SQUEUE_CMD", "SQUEUE_NODE",
	"SQUEUE_FMT_ARGS",
	"PBSNODES", "PBSNODES_LIST_ARGS", "PBSNODES_OFFLINE_ARGS", "PBSNODES_ONLINE_ARGS", "PBS_SERVER_HOME",
	"JOBFILE_PATH",
	"LSF_BADMIN", "LSF_BHOSTS", "LSF_OFFLINE_ARGS", "LSF_ONLINE_ARGS", "MDIAG_CMD", "MOABHOMEDIR", "MAX_SYS_UID",
	"LOGIN_DEFS_SRC",
	"NHC_AUTH_USERS", "RM_DAEMON_MATCH", "MCELOG", "MCELOG_ARGS", "MCELOG_MAX_CORRECTED_RATE",
	"MCELOG_MAX_UNCORRECTED_RATE",
	"NVIDIA_HEALTHMON", "NVIDIA_HEALTHMON_ARGS", "NVIDIA_SMI_HEALTHMON", "NVIDIA_SMI_HEALTHMON_ARGS", "SYSCONFIGDIR",
	"LIBEXECDIR",
}

// assign applies "NAME=value", and returns what the administrator has to do for it, "" if nothing.
func (s *settings) assign(name string, value word) string {
	if s.frozen[name] {
		return ""
	}
	asks, problem := false, ""
	if value.bash != "" && mayAsk(value.raw) && !mayAsk(name) {
		s.quiet["MARK_OFFLINE"] = true
		return name + " may set MARK_OFFLINE: faults from here on do not drain"
	}
	if s.first != nil && slices.Contains(confVariables, name) {
		s.first[name] = value
	}
	switch {
	case s.first != nil && value.text+value.bash == "": // NHC has a default for it
		delete(s.quiet, name)
		return ""
	case s.first != nil && name == "EVAL_LINE":
		s.quiet[name] = true
		return "with EVAL_LINE NHC reads no nhc.conf: faults of its lines do not drain"
	case s.first != nil && name == "NHC_RM" && value.text == "sge":
		s.quiet[name] = true
		return "with NHC_RM=sge NHC drains nothing: faults do not drain"
	}
	switch name {
	case "MARK_OFFLINE":
		asks, problem = !isOne(value), "write drain = false in [slurm] of health.toml"
	case "OFFLINE_NODE":
		asks = path.Base(value.text) != "node-mark-offline"
		problem = "OFFLINE_NODE does not run: faults from here on do not drain"
	case "NHC_RM":
		asks = value.bash == "" && !slices.Contains([]string{"slurm", "pbs", "sge", "lsf"}, value.text)
		problem = "NHC_RM names no resource manager: faults from here on do not drain"
	case "PATH":
		return "PATH does not reach commands; write their absolute paths"
	default:
		if slices.Contains(harmless, name) {
			return ""
		}
		return fmt.Sprintf("the setting %.30s has no counterpart", name)
	}
	if s.quiet[name] = true; !asks {
		delete(s.quiet, name)
		return ""
	}
	return problem
}

// isOne reports whether a value equals 1 in bash's arithmetic, as NHC tests MARK_OFFLINE. A value that only bash can
// evaluate does not.
func isOne(value word) bool {
	n, err := strconv.ParseInt(strings.Trim(value.text, " \t\n"), 0, 64)
	return value.bash == "" && err == nil && n == 1
}

// assignment matches the beginning of "NAME=value", "NAME+=value" and "NAME[0]=value".
var assignment = regexp.MustCompile(`^([A-Za-z_][A-Za-z0-9_]*)(\[[^]]*\])?(\+?)=`)

// parseAssignment returns the name and the value of an assignment; one that adds to a value is left to bash.
func parseAssignment(w word) (name string, value word, ok bool) {
	m := assignment.FindStringSubmatch(w.raw)
	if m == nil {
		return "", word{}, false
	}
	value = word{raw: w.raw[len(m[0]):], text: strings.TrimPrefix(w.text, m[0]), bash: w.bash}
	if m[2]+m[3] != "" {
		value.bash = w.raw
	}
	return m[1], value, true
}

// variable matches the name of a variable.
var variable = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// locals are the builtins that make variables of a function.
var locals = []string{"declare", "typeset", "local"}

// declare applies the arguments of export and the like. It returns what the administrator has to do, and false if an
// argument is not understood.
func (s *settings) declare(builtin string, args []word) (todo []string, ok bool) {
	readonly, isLocal := builtin == "readonly", slices.Contains(locals, builtin)
	if isLocal && s.first != nil { // of the function that reads the sysconfig file
		before := s.save()
		defer func() { s.addRequests(before.variables) }()
	}
	for _, w := range args {
		name, value, assigns := parseAssignment(w)
		switch {
		case !assigns && w.bash != "":
			return nil, false
		case !assigns && len(w.text) > 1 && strings.IndexByte("-+", w.text[0]) >= 0:
			if strings.ContainsAny(w.text, "fFp") || isLocal && strings.Contains(w.text, "n") { // functions, references
				return nil, false
			}
			readonly = readonly || isLocal && strings.Contains(w.text, "r")
			continue
		case !assigns && !variable.MatchString(w.text):
			return nil, false
		case builtin == "unset":
			name, value, assigns = w.text, word{}, true
		}
		if assigns {
			todo = appendText(todo, s.assign(name, value))
		} else {
			name = w.text
		}
		if readonly {
			s.freeze(name)
		}
	}
	return todo, true
}

// mayAsk reports whether a text that is not understood may ask not to drain.
func mayAsk(text string) bool {
	return strings.Contains(text, "MARK_OFFLINE") || strings.Contains(text, "OFFLINE_NODE")
}

func appendText(all []string, text string) []string {
	if text == "" {
		return all
	}
	return append(all, text)
}
