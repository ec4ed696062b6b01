// SPDX-License-Identifier: Apache-2.0

package seccomp

import (
	"fmt"
	"reflect"
	"slices"

	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
)

// answer asks the rules of one call in turn; other is what no rule answers.
func (a abi) answer(rules []specs.LinuxSyscall, other uint32) (code, error) {
	var all code
	for i := 0; i < len(rules); i++ {
		rule := rules[i]
		value, err := action(rule.Action, rule.ErrnoRet)
		if err != nil {
			return nil, err
		}
		if len(rule.Args) == 0 {
			return append(all, ret(value)), nil
		}
		if row := a.row(rules[i:]); len(row) > 1 {
			part := a.among(rule.Args[0].Index, row)
			all = append(append(all, settle(part, 1)...), ret(value))
			i += len(row) - 1
			continue
		}
		for _, args := range alternatives(rule.Args) {
			part, err := a.match(args, value)
			if err != nil {
				return nil, err
			}
			all = append(all, part...)
		}
	}
	return append(all, ret(other)), nil
}

// longestRow is so short that its jumps have 8 bits.
const longestRow = 200

// row is what the first rules compare one argument with, if that is all they do, and to the
// same end: they are one question then.
func (a abi) row(rules []specs.LinuxSyscall) (values []uint64) {
	first := rules[0]
	for _, r := range rules {
		if len(values) == longestRow || r.Action != first.Action || !reflect.DeepEqual(r.ErrnoRet, first.ErrnoRet) || len(r.Args) != 1 ||
			r.Args[0].Op != specs.OpEqualTo || r.Args[0].Index != first.Args[0].Index || r.Args[0].Index > 5 ||
			a.wide && r.Args[0].Value>>32 != first.Args[0].Value>>32 {
			break
		}
		values = append(values, r.Args[0].Value)
	}
	return values
}

// alternatives: comparisons of different arguments must all be true; with one argument
// compared twice each stands for itself, as runc has it for profiles of old.
func alternatives(args []specs.LinuxSeccompArg) [][]specs.LinuxSeccompArg {
	seen := map[uint]bool{}
	for _, arg := range args {
		if seen[arg.Index] {
			return slices.Collect(slices.Chunk(args, 1))
		}
		seen[arg.Index] = true
	}
	return [][]specs.LinuxSeccompArg{args}
}

// match returns value if all of args are true, and goes on behind itself if not.
func (a abi) match(args []specs.LinuxSeccompArg, value uint32) (code, error) {
	all := code{ret(value)}
	for _, arg := range slices.Backward(args) {
		part, err := a.compare(arg)
		if err != nil {
			return nil, err
		}
		all = append(settle(part, len(all)), all...)
	}
	return all, nil
}

// action is the value that a filter returns, seccomp(2).
func action(a specs.LinuxSeccompAction, errno *uint) (uint32, error) {
	value := uint32(unix.EPERM)
	if errno != nil {
		if *errno > 4095 { // MAX_ERRNO, linux/err.h
			return 0, fmt.Errorf("errnoRet %d in the profile is no error number; at most 4095", *errno)
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
	return 0, fmt.Errorf("unknown action %q in the profile; SCMP_ACT_NOTIFY would need an agent on the node", a)
}
