// SPDX-License-Identifier: Apache-2.0

package escape_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/tests/harness"
)

// listRights prints all that a process may do, as far as the kernel tells.
const listRights = `grep -E '^(Uid|Gid|Groups|Cap[A-Z][a-z]+|NoNewPrivs|Seccomp|Seccomp_filters):' /proc/self/status
for kind in mnt pid ipc uts net user; do readlink /proc/self/ns/$kind; done; cat /proc/self/uid_map /proc/self/gid_map /proc/self/setgroups
ls -l /run/munge | wc -l`

// TestRightsAreATasks requires that gojail enter has the rights of a task of the job, also if tasks are root in the jail, and with -u root no others
// outside of a user namespace.
func TestRightsAreATasks(t *testing.T) {
	s := sharedSite(t)
	s.closeJails(t)
	for _, p := range []place{closedUser, closedSelf, closedRange} {
		t.Run(p.name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			step := s.Exec(ctx, harness.Command{User: p.user, Args: append(slices.Clone(p.command), "sh", "-c", listRights+"; echo end; exec sleep 611")})
			out, err := step.StdoutPipe()
			require.NoError(t, err)
			require.NoError(t, step.Start())
			defer func() { s.endProcesses("sleep 611"); step.Wait() }()
			var task strings.Builder
			for buffer := make([]byte, 4096); !strings.HasSuffix(task.String(), "end\n"); {
				n, err := out.Read(buffer)
				task.Write(buffer[:n])
				require.NoError(t, err, task.String())
			}
			id := strings.TrimSpace(s.Root("squeue", "-h", "-t", "R", "-o", "%i").Stdout)
			r := s.Gojail("n1", "enter", id, "--", "sh", "-c", listRights+"; echo end")
			assert.Equal(t, task.String(), r.Stdout, r)

			r = s.Gojail("n1", "enter", id, "-u", "root", "--", "sh", "-c", "id -u; cat /proc/self/uid_map; cat /proc/self/setgroups; "+attackPath+" run node-uid node-rights munge-socket")
			require.Zero(t, r.Code, r)
			assert.True(t, strings.HasPrefix(r.Stdout, "0\n"), r)
			assert.NotContains(t, r.Stdout, escaped, r)
			assert.Equal(t, 3, strings.Count(r.Stdout, held), r)
		})
	}
}
