// SPDX-License-Identifier: Apache-2.0

package mount

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/gojail/config"
	"github.com/gojail/gojail/internal/nstest"
)

// TestNobodyTypesForOthers: also where the upper half of the command, which the kernel
// does not look at, is another.
func TestNobodyTypesForOthers(t *testing.T) {
	nstest.NeedRoot(t)
	try := func(lines string) (answers []error) {
		c, err := config.ParseConfig("default = \"a\"\n[jail.a]\nroot = \"/j\"\n"+lines, "n1")
		require.NoError(t, err)
		require.NoError(t, onThread(func() error {
			if err := Confine(c.Jails["a"]); err != nil {
				return err
			}
			for _, command := range []uintptr{unix.TIOCSTI, unix.TIOCLINUX, unix.TIOCSTI | 1<<32, unix.TIOCGWINSZ} {
				_, _, errno := unix.Syscall(unix.SYS_IOCTL, ^uintptr(0), command, 0)
				answers = append(answers, errno)
			}
			return nil
		}))
		return answers
	}
	refused := []error{unix.EPERM, unix.EPERM, unix.EPERM, unix.EBADF}
	assert.Equal(t, refused, try(""))
	assert.Equal(t, refused, try("seccomp = \"none\"\ntmp_size = \"1G\""))
	assert.Equal(t, []error{unix.EBADF, unix.EBADF, unix.EBADF, unix.EBADF}, try(`seccomp = "none"`))
}
