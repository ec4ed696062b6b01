// SPDX-License-Identifier: Apache-2.0

package gojail

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"

	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/gojail/seccomp"
)

// filterDir holds the compiled seccomp programs, below the state directory.
const filterDir = "seccomp"

// profile is the seccomp profile of a jail's tasks; nil: they have none.
func (j *Jail) profile() (*specs.LinuxSeccomp, error) {
	i := &j.Isolation
	if i.Seccomp == None && !i.KeepProjects {
		return nil, nil
	}
	var profile *specs.LinuxSeccomp
	var err error
	switch i.Seccomp {
	case None:
		profile = &specs.LinuxSeccomp{DefaultAction: specs.ActAllow}
	case SeccompDefault:
		profile, err = seccomp.Default(i.bounding())
	default:
		profile, err = seccomp.Load(i.Seccomp, i.bounding())
	}
	if err != nil {
		return nil, ofJail(j.Name, err)
	}
	refused := typing()
	if i.KeepProjects {
		refused = append(refused, quotaEscapes()...)
	}
	profile.Syscalls = append(refused, profile.Syscalls...) // the first rule that fits decides
	return profile, nil
}

// typing is input for a terminal that was not typed there (ioctl_tty(2), ioctl_console(2)):
// who looks into a jail may bring a terminal.
func typing() []specs.LinuxSyscall { return refuseIoctl(unix.TIOCSTI, unix.TIOCLINUX) }

// refuseIoctl: the kernel looks at the low half of a command only.
func refuseIoctl(commands ...uint64) []specs.LinuxSyscall {
	refused := uint(unix.EPERM)
	var list []specs.LinuxSyscall
	for _, command := range commands {
		list = append(list, specs.LinuxSyscall{
			Names: []string{"ioctl"}, Action: specs.ActErrno, ErrnoRet: &refused,
			Args: []specs.LinuxSeccompArg{{Index: 1, Value: 0xffffffff, ValueTwo: command, Op: specs.OpMaskedEqual}},
		})
	}
	return list
}

// Filter compiles the seccomp program of a jail; nil: it has none.
func (j *Jail) Filter() ([]byte, error) {
	profile, err := j.profile()
	if profile == nil || err != nil {
		return nil, err
	}
	program, err := seccomp.Compile(profile)
	if err != nil {
		return nil, fmt.Errorf("jail %s: seccomp: %w", j.Name, err)
	}
	return program, nil
}

// writeFilters compiles those of all jails. The names, relative to the state
// directory, tell the content: a step that has read the site file of before finds
// its own. They are small, few, and gone with the next boot.
func writeFilters(c *Config, stateDir string) (map[string]string, error) {
	dir := filepath.Join(stateDir, filterDir)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("cannot make %s: %w; is the state directory full or read-only?", dir, cause(err))
	}
	names := map[string]string{}
	for _, name := range c.JailNames() {
		program, err := c.Jails[name].Filter()
		if err != nil {
			return nil, err
		}
		if program == nil {
			continue
		}
		sum := sha256.Sum256(program)
		names[name] = filepath.Join(filterDir, fmt.Sprintf("%x", sum[:8]))
		path := filepath.Join(stateDir, names[name])
		if st, err := os.Stat(path); err == nil && st.Size() == int64(len(program)) {
			continue
		}
		if err := replaceFile(path, string(program)); err != nil {
			return nil, err
		}
	}
	return names, nil
}
