// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"context"
	"net"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/healthcheck/check"
	"github.com/gojail/gojail/healthcheck/config"
	"github.com/gojail/gojail/internal/nstest"
)

func TestController(t *testing.T) {
	if !nstest.IsRoot() {
		t.Skip("needs root: a ping has a raw socket")
	}
	h, s := testHost(t), config.DefaultSettings()
	expect(t, once(h, controller, s), check.NotApplicable, "")
	put(t, h.Roots.Run+"/slurm/conf/slurm.conf", "ClusterName=x\nSlurmctldHost=no.such.host.invalid\n")
	expect(t, once(h, controller, s), check.Unknown, "cannot resolve the name of the controller no.such.host.invalid")
	put(t, h.Roots.Etc+"/slurm/slurm.conf", "slurmctldhost=ctl(127.0.0.1) # this one\nSlurmctldPort=6817\n")
	assert.Equal(t, []string{"127.0.0.1"}, readControllerHosts(h))
	f := again(h, controller, s, check.Finding{})
	expect(t, f, check.OK, "")
	assert.JSONEq(t, `["127.0.0.1"]`, string(f.State))
	s.Network.Interface = "ctl0" // the controller is on this node
	expect(t, again(h, controller, s, f), check.OK, "")

	// The host answered before; no host answers for this address (RFC 5737).
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	h.State = []byte(`["192.0.2.1"]`)
	s.Network.Controllers = []string{"192.0.2.1"}
	f = controller(ctx, h, s)
	assert.Contains(t, []check.Verdict{check.Warn, check.Fail, check.Unknown}, f.Verdict, f.Text) // by the machine's routes
	var p problems
	checkRoute(&p, "x", netip.MustParseAddr("127.0.0.1"), "eth7")
	expect(t, p.buildFinding("good"), check.OK, "")
}

// Four unresponsive controllers together take the time of one.
func TestControllersAreLookedForAtOnce(t *testing.T) {
	hosts := []string{"a", "b", "c", "d"}
	var all sync.WaitGroup
	all.Add(len(hosts))
	done := make(chan []string, 1)
	go func() {
		done <- probeAll(hosts, func(host string) string {
			all.Done()
			all.Wait() // for the others
			return host + "!"
		})
	}()
	select {
	case got := <-done:
		assert.Equal(t, []string{"a!", "b!", "c!", "d!"}, got)
	case <-time.After(time.Minute):
		t.Fatal("one waits for another")
	}
}

// The kernel reports the interface toward a neighbour; nothing is sent.
func TestTheWayToTheController(t *testing.T) {
	all, err := net.Interfaces()
	require.NoError(t, err)
	for _, link := range all {
		addrs, _ := link.Addrs()
		for _, a := range addrs {
			prefix, err := netip.ParsePrefix(a.String())
			if err != nil || link.Flags&net.FlagLoopback != 0 || link.Flags&net.FlagUp == 0 || !prefix.Addr().Is4() || prefix.Bits() > 29 {
				continue
			}
			neighbour := prefix.Masked().Addr().Next()
			if neighbour == prefix.Addr() {
				neighbour = neighbour.Next()
			}
			var p problems
			checkRoute(&p, "ctl", neighbour, link.Name)
			expect(t, p.buildFinding("good"), check.OK, "")
			checkRoute(&p, "ctl", neighbour, "other0")
			expect(t, p.buildFinding("good"), check.Fail, "the controller ctl is reached through "+link.Name+" instead of other0")
			return
		}
	}
	t.Skip("this machine has no network with neighbours")
}

func TestChecksum(t *testing.T) {
	assert.Equal(t, ^uint16(0xddf2), computeChecksum([]byte{0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7})) // the example of RFC 1071
}
