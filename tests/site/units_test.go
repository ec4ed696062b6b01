// SPDX-License-Identifier: Apache-2.0

package site_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestUnits: under a real systemd no unit has failed, nothing is wrong for gojail check, and what the units make is there.
func TestUnits(t *testing.T) {
	s := sharedSite(t)
	for _, g := range s.guests() {
		r := g.run("", "systemctl --failed --no-legend --plain")
		assert.Empty(t, r.Stdout, "%v", g.run("", "for u in $(systemctl --failed --no-legend --plain | cut -d' ' -f1); do journalctl --no-pager -n 10 -u $u; done"))
	}
	for _, g := range s.nodes() {
		r := g.run("", "systemctl is-active gojail-vf gojail-metrics.timer slurmd; systemctl is-enabled gojail-vf gojail-metrics.timer")
		assert.Equal(t, "active\nactive\nactive\nenabled\nenabled\n", r.Stdout, r)
		r = g.run("", "gojail check")
		assert.NotContains(t, r.Stdout, "FAIL", r)
		// A check that had no answer in time on a busy emulated machine is asked again.
		assert.True(t, poll(10*time.Minute, func() bool { r = g.run("", "gojail-healthcheck --dry-run"); return r.Code >= 0 && r.Code < 2 }), "%v", r)
		r = g.run("", "ls /sys/class/net/*/device/physfn -d | wc -l; ls /dev/gojail | wc -l")
		assert.Equal(t, "2\n2\n", r.Stdout, r)

		// The timer replaces the file.
		const written = "sed -n 's/^gojail_metrics_time_seconds{.*} //p' /var/lib/gojail-metrics/node-exporter/gojail-$(hostname).prom"
		first := g.run("", written)
		require.NotEmpty(t, first.Stdout, first)
		assert.True(t, poll(6*time.Minute, func() bool { r := g.run("", written); return r.Stdout != "" && r.Stdout != first.Stdout }), "%v", g.run("", "systemctl list-timers; journalctl --no-pager -n 20 -u gojail-metrics"))
	}
	const page = `exec 3<>/dev/tcp/127.0.0.1/9948 && printf 'GET /metrics HTTP/1.0\r\n\r\n' >&3 && cat <&3`
	assert.True(t, poll(6*time.Minute, func() bool {
		return s.head.run("", page+` | grep -q 'node="n2"'`).Code == 0
	}), "%v", s.head.run("", page+" | head -40; systemctl status gojail-exporter"))
}
