// SPDX-License-Identifier: Apache-2.0

package quota

import (
	"encoding/binary"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/gojail/contract"
)

// TestForgetUnusedQuotasOfANewJob: a job may come with the number of one that ended between the look at what that has and the removal of its
// limit. The kernel is played.
func TestForgetUnusedQuotasOfANewJob(t *testing.T) {
	const project, limit = contract.ProjectOfJobs ^ 17, 1024
	real := quotactl
	t.Cleanup(func() { quotactl = real })
	for name, test := range map[string]struct{ inodes, ownLimit, want uint64 }{
		"no new job":                        {0, 0, 0},
		"a new job found the old limit":     {1, 0, limit},
		"a new job found none, and set one": {1, 77, 77},
	} {
		var have block
		binary.NativeEndian.PutUint64(have[:], limit)
		binary.NativeEndian.PutUint32(have[offsetID:], project)
		sets := 0
		quotactl = func(_, command uintptr, of uint32, b *block) unix.Errno {
			switch {
			case command == getNextQuota && of > project:
				return unix.ENOENT
			case command == setQuota:
				binary.NativeEndian.PutUint64(have[:], binary.NativeEndian.Uint64(b[:]))
				if sets++; sets == 1 {
					binary.NativeEndian.PutUint64(have[offsetInodes:], test.inodes)
					binary.NativeEndian.PutUint64(have[:], test.ownLimit)
				}
				assert.EqualValues(t, project, of)
				assert.EqualValues(t, 5, binary.NativeEndian.Uint32(b[offsetValid:]), "QIF_LIMITS")
			default:
				*b = have
			}
			return 0
		}
		ForgetUnusedQuotas(os.Stdin)
		assert.Equal(t, test.want, binary.NativeEndian.Uint64(have[:]), name)
		assert.NotZero(t, sets)
	}
}
