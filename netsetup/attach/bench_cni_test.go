// SPDX-License-Identifier: Apache-2.0

package attach

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/netsetup/netns"
)

func BenchmarkCNIStandInAttach(b *testing.B)  { benchmarkCNI(b, true) }
func BenchmarkCNIStandInRelease(b *testing.B) { benchmarkCNI(b, false) }

// benchmarkCNI measures the same work by tests/bench/cni: one process for each plugin and
// rail, one after the other, as multus starts them.
func benchmarkCNI(b *testing.B, attach bool) {
	program := filepath.Join(b.TempDir(), "cni")
	out, err := exec.Command("go", "build", "-o", program, "../../tests/bench/cni").CombinedOutput()
	require.NoError(b, err, string(out))
	for _, rails := range []int{1, 8} {
		b.Run(fmt.Sprintf("rails=%d", rails), func(b *testing.B) {
			n := newNode(b, setup{cards: rails})
			job := newJobSpace(b)
			state := makeMemoryDir(b)
			each := func(verb string, plugins ...string) {
				for i := range rails {
					for _, plugin := range plugins {
						runPlugin(b, n, program, plugin, verb, map[string]any{
							"Netns": fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), job.FD()), "Device": newCard(i).Name + "v0",
							"Name": fmt.Sprintf("net%d", i+1), "Address": fmt.Sprintf("10.%d.0.1/16", i+1),
							"Gateway": fmt.Sprintf("10.%d.255.254", i+1), "Table": 101 + i, "State": state,
						})
					}
				}
			}
			timeHalf(b, attach,
				func() { each("ADD", "sriov", "rdma", "sbr", "tuning") },
				func() { each("DEL", "tuning", "sbr", "rdma", "sriov") })
		})
	}
}

// runPlugin starts one plugin in the node's namespace.
func runPlugin(b *testing.B, n *node, program, plugin, verb string, conf map[string]any) {
	text, err := json.Marshal(conf)
	require.NoError(b, err)
	cmd := exec.Command(program, plugin, verb)
	cmd.Stdin = strings.NewReader(string(text))
	var out []byte
	err = netns.RunInside(n.host.FD(), func() (err error) {
		out, err = cmd.CombinedOutput()
		return err
	})
	require.NoError(b, err, string(out))
}
