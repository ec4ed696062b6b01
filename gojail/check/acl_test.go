// SPDX-License-Identifier: Apache-2.0

package check

import (
	"encoding/binary"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// A root that an access control list opens to the users of a cluster is not closed: a failure would drain each node.
func TestRootWithAnACL(t *testing.T) {
	for mode, want := range map[uint16]string{5: "WARN  jail a: ", 0: "FAIL  jail a: "} { // of the mask
		n := newGoodNode(t)
		list := binary.LittleEndian.AppendUint32(nil, 2) // acl_xattr_header of linux/posix_acl_xattr.h
		for _, e := range [][2]uint16{{1, 7}, {4, 0}, {8, 5}, {16, mode}, {32, 0}} {
			list = binary.LittleEndian.AppendUint16(binary.LittleEndian.AppendUint16(list, e[0]), e[1])
			id := ^uint32(0)
			if e[0] == 8 {
				id = 5001
			}
			list = binary.LittleEndian.AppendUint32(list, id)
		}
		err := unix.Setxattr(n.root, "system.posix_acl_access", list, 0)
		if err == unix.EOPNOTSUPP {
			t.Skip("no ACL here")
		}
		require.NoError(t, err)
		assert.Contains(t, n.listFindings(), want)
	}
}

// Users who may be root in a jail can close its root, and must not drain nodes by that.
func TestRootThatItsUsersCanClose(t *testing.T) {
	for isolation, content := range map[string]bool{"": false, "jail_root = [\"range\"]\n": true} {
		n := newGoodNode(t)
		n.configure(t, isolation)
		require.NoError(t, os.Chmod(n.root, 0o700))
		var found []bool
		Check(n.Node, func(f Finding) {
			if strings.Contains(f.Found, "users may not enter it, only root may") {
				found = append(found, f.Content)
			}
		})
		assert.Equal(t, []bool{content}, found, isolation)
	}
}

func TestListsOfNFSv4(t *testing.T) {
	entry := func(kind, mask uint32, who string) string {
		var list []byte
		for _, n := range []uint32{kind, 0, mask, uint32(len(who))} {
			list = binary.BigEndian.AppendUint32(list, n)
		}
		return string(list) + who + strings.Repeat("\x00", -len(who)&3)
	}
	owner, group := entry(0, 0x20, "OWNER@"), entry(0, 0x20, "GROUP@")
	for list, want := range map[string]bool{
		"\x00\x00\x00\x00":                                         false,
		"\x00\x00\x00\x02" + owner + group:                         false,
		"\x00\x00\x00\x02" + owner + entry(0, 0x20, "hpc@site"):    true,
		"\x00\x00\x00\x02" + entry(0, 1, "hpc@site") + group:       false,
		"\x00\x00\x00\x02" + entry(1, 0x20, "hpc@site") + owner:    false,
		"\x00\x00\x00\x03" + owner + group:                         true,
		"\x00\x00\x00\x01" + owner[:18]:                            true,
		"\x00\x00\x00\x01" + owner[:12] + "\xff\xff\xff\xffOWNER@": true,
		"": true,
	} {
		assert.Equal(t, want, admitsNamed([]byte(list)), "%q", list)
	}
}

// The thread that started the process keeps its rights, and with them the signal at the end of the parent.
func TestRightsOfTheFirstThread(t *testing.T) {
	newGoodNode(t)
	const calls = 64 // at a time, so that they need each thread that is idle
	var started, ended sync.WaitGroup
	started.Add(calls)
	for range calls {
		ended.Go(func() {
			assert.NoError(t, asUser(func() error {
				started.Done()
				started.Wait()
				assert.NotEqual(t, unix.Getpid(), unix.Gettid())
				return nil
			}))
		})
	}
	ended.Wait()
}
