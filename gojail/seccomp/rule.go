// SPDX-License-Identifier: Apache-2.0

package seccomp

import (
	"fmt"
	"slices"

	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
)

// rule is the profile's rule for one system call of one ABI: the answer if all comparisons hold.
type rule struct {
	answer      uint32
	comparisons []comparison
}

// readRule returns the meaning of a profile's rule for a system call.
func (a abi) readRule(name string, from specs.LinuxSyscall) (r rule, err error) {
	if r.answer, err = readAction(from.Action, from.ErrnoRet); err != nil {
		return r, err
	}
	for _, arg := range from.Args {
		c, err := a.readComparison(name, arg)
		if err != nil {
			return r, err
		}
		r.comparisons = append(r.comparisons, c)
	}
	return r, nil
}

// compileRules returns the code that tests the rules of one system call in turn; other is the answer if none
// matches.
func compileRules(rules []rule, other uint32) (code, error) {
	all, decided, err := compileList(expandRules(rules))
	if !decided {
		all = append(all, returnValue(other))
	}
	return all, err
}

// compileList returns the code that tests rules in turn, and that continues behind itself if none matches; decided
// reports that one matches in any case.
func compileList(rules []rule) (all code, decided bool, err error) {
	for len(rules) > 0 {
		if len(rules[0].comparisons) == 0 {
			return append(all, returnValue(rules[0].answer)), true, nil
		}
		n := rowLength(rules)
		if n > 1 {
			part := append(resolveJumps(compileRow(rules[:n]), 1), returnValue(rules[0].answer))
			all, rules = append(all, part...), rules[n:]
			continue
		}
		n = groupLength(rules)
		part, err := compileGroup(rules[:n])
		if err != nil {
			return nil, false, err
		}
		all, rules = append(all, part...), rules[n:]
	}
	return all, false, nil
}

// longestRow is the limit of a row, so that its jumps fit in 8 bits.
const longestRow = 200

// rowLength returns how many of the first rules can be tested as one row: each compares the same argument
// with one value, and all have the same high word and answer.
func rowLength(rules []rule) int {
	first := rules[0]
	for n, r := range rules {
		if n == longestRow || r.answer != first.answer || len(r.comparisons) != 1 {
			return n
		}
		c, of := r.comparisons[0], first.comparisons[0]
		if c.op != specs.OpEqualTo || c.index != of.index || c.seen != of.seen || c.value>>32 != of.value>>32 {
			return n
		}
	}
	return len(rules)
}

// expandRules returns the rules with one rule for each alternative. Comparisons of different arguments must all
// hold; if one argument is compared twice, each comparison is an alternative, as in runc, for old
// profiles.
func expandRules(rules []rule) (expanded []rule) {
	for _, r := range rules {
		if !comparesTwice(r.comparisons) {
			expanded = append(expanded, r)
			continue
		}
		for alternative := range slices.Chunk(r.comparisons, 1) {
			expanded = append(expanded, rule{r.answer, alternative})
		}
	}
	return expanded
}

// comparesTwice reports whether one argument is compared twice.
func comparesTwice(all []comparison) bool {
	seen := map[uint]bool{}
	for _, c := range all {
		if seen[c.index] {
			return true
		}
		seen[c.index] = true
	}
	return false
}

// groupLength returns how many of the first rules begin with the same comparison.
func groupLength(rules []rule) int {
	for n, r := range rules {
		if len(r.comparisons) == 0 || r.comparisons[0] != rules[0].comparisons[0] {
			return n
		}
	}
	return len(rules)
}

// longestGroup is the limit of the code behind a comparison, so that the jump over it fits in 8 bits.
const longestGroup = 200

// compileGroup returns the code of rules that begin with the same comparison: it is tested once, and again in the
// middle of a group that is too long for a jump.
func compileGroup(rules []rule) (code, error) {
	rest := slices.Clone(rules)
	for i := range rest {
		rest[i].comparisons = rest[i].comparisons[1:]
	}
	inner, _, err := compileList(rest)
	if err != nil {
		return nil, err
	}
	if half := len(rules) / 2; half > 0 && len(inner) > longestGroup {
		first, err := compileGroup(rules[:half])
		if err != nil {
			return nil, err
		}
		second, err := compileGroup(rules[half:])
		return append(first, second...), err
	}
	steps, err := rules[0].comparisons[0].compileSteps()
	return append(resolveJumps(steps, len(inner)), inner...), err
}

// readAction returns the value of an action for a filter to return, seccomp(2).
func readAction(a specs.LinuxSeccompAction, errno *uint) (uint32, error) {
	value := uint32(unix.EPERM)
	if errno != nil {
		if *errno > 4095 { // MAX_ERRNO, linux/err.h
			return 0, fmt.Errorf("errnoRet %d in the profile is not an error number; the maximum is 4095", *errno)
		}
		value = uint32(*errno)
	}
	switch a {
	case specs.ActAllow:
		return unix.SECCOMP_RET_ALLOW, nil
	case specs.ActErrno:
		return unix.SECCOMP_RET_ERRNO | value, nil
	case specs.ActKill, specs.ActKillThread:
		return unix.SECCOMP_RET_KILL_THREAD, nil
	case specs.ActKillProcess:
		return unix.SECCOMP_RET_KILL_PROCESS, nil
	case specs.ActTrap:
		return unix.SECCOMP_RET_TRAP, nil
	case specs.ActTrace:
		return unix.SECCOMP_RET_TRACE | value, nil
	case specs.ActLog:
		return unix.SECCOMP_RET_LOG, nil
	}
	return 0, fmt.Errorf("unknown action %q in the profile; SCMP_ACT_NOTIFY is not supported", a)
}
