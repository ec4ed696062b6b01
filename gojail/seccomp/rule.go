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
	var all code
	for i := 0; i < len(rules); i++ {
		rule := rules[i]
		if len(rule.comparisons) == 0 {
			return append(all, returnValue(rule.answer)), nil
		}
		if n := rowLength(rules[i:]); n > 1 {
			part := compileRow(rules[i : i+n])
			all = append(append(all, resolveJumps(part, 1)...), returnValue(rule.answer))
			i += n - 1
			continue
		}
		for _, comparisons := range expandAlternatives(rule.comparisons) {
			part, err := compileRule(comparisons, rule.answer)
			if err != nil {
				return nil, err
			}
			all = append(all, part...)
		}
	}
	return append(all, returnValue(other)), nil
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

// expandAlternatives returns the comparisons as alternatives. Comparisons of different arguments must all
// hold; if one argument is compared twice, each comparison is an alternative, as in runc, for old
// profiles.
func expandAlternatives(all []comparison) [][]comparison {
	seen := map[uint]bool{}
	for _, c := range all {
		if seen[c.index] {
			return slices.Collect(slices.Chunk(all, 1))
		}
		seen[c.index] = true
	}
	return [][]comparison{all}
}

// compileRule returns the code that answers value if all comparisons hold, and otherwise continues behind
// itself.
func compileRule(comparisons []comparison, value uint32) (code, error) {
	all := code{returnValue(value)}
	for _, c := range slices.Backward(comparisons) {
		part, err := c.compileSteps()
		if err != nil {
			return nil, err
		}
		all = append(resolveJumps(part, len(all)), all...)
	}
	return all, nil
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
