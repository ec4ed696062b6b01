// SPDX-License-Identifier: Apache-2.0

package session_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestManyLoginsAfterMunged requires that sessions which begin at once after a restart of munged show its new socket in their sandbox
// once, whichever comes first: mounts would pile up, and the last one could be of an older socket.
func TestManyLoginsAfterMunged(t *testing.T) {
	s := sharedLoginNode(t, strings.Replace(loginTable, "2s", "6s", 1))
	const socket = "/run/munge/munge.socket.2"
	restore := func() { s.Root("sh", "-c", "cd /run/munge; [ ! -e first ] || mv first "+socket) }
	t.Cleanup(restore)
	require.Zero(t, s.Root("ln", socket, "/run/munge/first").Code)
	mounts := func() string {
		return strings.TrimSpace(s.runAsAlice("$P -c 'grep -c " + socket + " /proc/self/mountinfo'").Stdout)
	}
	before := mounts()
	require.NotEqual(t, "0", before)
	for range 3 {
		require.Zero(t, s.Root("sh", "-ec", "cd /run/munge; rm "+socket+"; perl -MSocket -e 'socket(S,PF_UNIX,SOCK_STREAM,0); bind(S,sockaddr_un(shift))' "+socket).Code)
		inode := strings.TrimSpace(s.Root("stat", "-c%i", socket).Stdout)
		const many = 8
		r := s.runAsAlice("for i in $(seq " + strconv.Itoa(many) + "); do $P -c 'stat -c%i " + socket + "' & done; wait")
		assert.Equal(t, strings.Repeat(inode+"\n", many), r.Stdout, r)
		assert.Equal(t, before, mounts(), "mounts of the socket")
	}
}
