// SPDX-License-Identifier: Apache-2.0

package slurm_test

import (
	"fmt"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/gojail/gojail/tests/harness"
)

// names are the files of a template in the order in which the launcher gives them their names; the record is the last.
var names = []string{"identity", "storage.sock", "socket", "storage", "zygote"}

// killAtName puts a launcher in place that is killed when it is about to give that file of a template its name.
func killAtName(name string) string {
	return replaceLauncher(`[ "$1" != template ] || exec strace -f -o /dev/null -P ` + name + ` -e inject=renameat,renameat2:signal=KILL $real "$@"; exec $real "$@"`)
}

// TestKilledBetweenTheNamesOfATemplate: whichever of the files of a new template has its name already when the launcher
// is killed, that launch is refused, and the next has the new template.
func TestKilledBetweenTheNamesOfATemplate(t *testing.T) {
	if _, err := exec.LookPath("strace"); err != nil {
		t.Skip("needs strace: make deps")
	}
	for _, node := range []string{"warm", "cold"} {
		t.Run(node, func(t *testing.T) {
			c := newTreesCluster(t, 10*time.Second*harness.Slow)
			waitForTree(t, c, "v1")
			step := startJob(t, c)
			for i, name := range names {
				tree := []string{"v2", "v1"}[i%2]
				before := readRecordPid(t, c, "jails/debian/zygote")
				if node == "cold" {
					runAsRoot(t, c, "kill -KILL "+strconv.Itoa(before))
				}
				runAsRoot(t, c, "cd /srv/versions; ln -s "+tree+" new; mv -T new current")
				waitForExpiry()
				runAsRoot(t, c, killAtName(name))
				requireRefused(t, "gojail-launcher", c.Run(harness.Alice, "srun", "-wn1", "--jail=debian", "true"))
				runAsRoot(t, c, mendExe)

				assert.Equal(t, before, readRecordPid(t, c, "jails/debian/zygote"), "no record is written before %s", name)
				requireOutput(t, tree, c.Run(harness.Alice, "srun", "-wn1", "--jail=debian", "cat", marker))
				requireOutput(t, "v1", step("cat "+marker))
				assert.NotEqual(t, before, readRecordPid(t, c, "jails/debian/zygote"), "killed before %s", name)
				requireOneZygote(t, c, "n1")
			}
		})
	}
}

// TestLongStateDirectory: the sockets of a state directory whose path does not fit into a socket's address.
func TestLongStateDirectory(t *testing.T) {
	c := harness.Start(t, jailed)
	long := "/run/gojail/" + fmt.Sprintf("%0100d", 0)
	runAsRoot(t, c, "mkdir -p -m 700 "+long+" && sed -i 's| state=[^ ]*| state="+long+"/%n|' /etc/slurm/plugstack.conf")
	for range 2 {
		requireOutput(t, "debian", c.Run(harness.Alice, "srun", "-wn1", "--jail=debian", "cat", marker))
		waitForExpiry()
	}
	assert.NotEmpty(t, readFile(c, long+"/n1/jails/debian/zygote"))
}
