// SPDX-License-Identifier: Apache-2.0

package filelock

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"golang.org/x/sys/unix"
)

func TestLockErrors(t *testing.T) {
	for err, want := range map[error]string{
		unix.EWOULDBLOCK: "cannot lock /s/lock: another process held the lock until the deadline",
		unix.EIO:         "cannot lock /s/lock: input/output error",
		unix.ENOSYS:      "cannot lock /s/lock: function not implemented; use a directory on the node itself, for example in /run, or mount Lustre with -o flock",
		unix.ENOLCK:      "cannot lock /s/lock: no locks available; use a directory on the node itself, for example in /run, or mount Lustre with -o flock",
	} {
		assert.EqualError(t, Explain("/s/lock", err), want)
	}
}
