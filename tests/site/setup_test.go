// SPDX-License-Identifier: Apache-2.0

package site_test

import (
	"fmt"
	"sync"
	"testing"
	"time"
)

// networkConf has one rail, on the card of each node, which are not connected. LAN is the interface of the site's network.
const networkConf = `[[policy]]
name = "card"
nic = { vendor = "8086", root = ["0000:01:00.0"] }
vfs = 2
[[pool]]
name = "rail0"
subnet = "10.9.0.0/24"
nodes = "n[1-2]"
per_node = 2
[[rail]]
name = "rail0"
policy = "card"
pools = ["rail0"]
labels = ["ai"]
gres = "nic:rail0"
[[pool]]
name = "control"
subnet = "192.0.2.0/24"
ranges = ["192.0.2.128-192.0.2.191"]
nodes = "n[1-2]"
per_node = 8
[control]
pool = "control"
interface = "LAN"
[probe]
gateway = false
`

// jailConf lets a step wait for its sandbox as long as a machine that is emulated beside many others needs: 60 s were too few once.
const jailConf = `default    = "debian"
allow_none = false
deadline   = "10m"
[jail.debian]
root = "/srv/jails/debian"
host = ["/etc/resolv.conf", "/etc/hosts", "/etc/passwd", "/etc/group"]
[[jail.debian.mounts]]
destination = "/home"
source      = "/home"
options     = ["rbind", "nosuid", "nodev"]
`

// healthConf lets the checks report only: an emulated machine may be slower than their limits.
const healthConf = `total = "50s"
[slurm]
timeout = "20s"
drain = false
[check.jail]
timeout = "25s"
`

// emulatedMetrics gives gojail-metrics the time that a program needs on an emulated machine.
var emulatedMetrics = write("/etc/systemd/system/gojail-metrics.service.d/emulated.conf", "[Service]\nTimeoutStartSec=5min\n") + "systemctl daemon-reload\n"

// write returns the script that writes a file.
func write(path, text string) string {
	return fmt.Sprintf("mkdir -p $(dirname %[1]s) && cat >%[1]s <<'EOF'\n%[2]sEOF\n", path, text)
}

// aptInstall is docs/install.md, Install packages, of those in a directory of the share; or, with a package for one release of Slurm
// in that directory or on the machine, docs/upgrades.md.
func aptInstall(dir string) string {
	if dir != "new" {
		return "cd /site/" + dir + " && dpkg -i ./gojail_*.deb ./gojail-slurm-24.11_*.deb"
	}
	return "cd /site/new && apt-get install -qy --allow-downgrades ./gojail_*.deb ./gojail-slurm_*.deb " +
		"$(! dpkg-query -W -f '${db:Status-Status}' gojail-slurm-24.11 2>/dev/null | grep -qx installed || ls ./gojail-slurm-24.11_*.deb)"
}

// step is a part of the set-up: what is run on which machines, at the same time. The order is that of docs/install.md.
type step struct {
	what   string
	on     func(*site) []*guest
	script string
}

// initJail is run on both nodes, though the jail is on storage that they share.
const initJail = "flock /srv/jails gojail init debian"

const docDir = "/usr/share/doc/gojail"

var installation = []step{
	{"Install packages", (*site).guests, aptInstall("new")},
	{"Configure the node 1", (*site).nodes, write("/etc/gojail/gojail.toml", jailConf)},
	{"networks.md, Set up 1 and 2", (*site).nodes, write("/etc/gojail/network.toml", networkConf) +
		"sed -i s/LAN/$(ip -o addr | awk '/ 192.0.2./ { print $2 }')/ /etc/gojail/network.toml; echo net.ipv4.ip_forward=1 >/etc/sysctl.d/60-forward.conf; sysctl -q --system\n" +
		"udevadm control --reload; networkctl reload; systemctl enable --now gojail-vf"},
	{"Configure the node 2", (*site).nodes, initJail},
	{"Enable the plugin 1", (*site).guests, "sed -i 's/^#required/required/' /etc/slurm/plugstack.conf.d/gojail.conf"},
	{"Enable the plugin 2 and 3, health.md, Set up 3", (*site).guests, "cat >>/etc/slurm/slurm.conf <<'EOF'\n" +
		"JobSubmitPlugins=gojail\nPluginDir=/usr/lib/x86_64-linux-gnu/slurm-wlm:/usr/lib/gojail\nProlog=/usr/lib/gojail/prolog-1\n" +
		"HealthCheckProgram=/usr/sbin/gojail-healthcheck\nHealthCheckInterval=300\nHealthCheckNodeState=ANY,CYCLE\n" +
		"GresTypes=nic\nEOF\nsed -i 's/^NodeName=.*/& Gres=nic:rail0:2/' /etc/slurm/slurm.conf"},
	{"Enable the plugin 2", (*site).nodes, initJail},
	{"networks.md, Set up 3", (*site).nodes, "gojail gres | grep '^NodeName.*File=' >/home/gres.$(hostname)"},
	{"networks.md, Set up 3", (*site).guests, "cat /home/gres.n1 /home/gres.n2 >/etc/slurm/gres.conf"},
	{"operations.md, Services of Slurm", (*site).nodes, "cd " + docDir + "/systemd && install -D -m 644 slurmd.conf /etc/systemd/system/slurmd.service.d/gojail.conf && systemctl daemon-reload"},
	{"operations.md, Services of Slurm", (*site).controllers, "cd " + docDir + "/systemd && install -D -m 644 slurmctld.conf /etc/systemd/system/slurmctld.service.d/gojail.conf && " +
		"sed -i s,/var/lib/slurm/slurmctld,/srv/state, /etc/systemd/system/slurmctld.service.d/gojail.conf && systemctl daemon-reload"},
	{"health.md, Set up 2", (*site).nodes, write("/etc/gojail/health.toml", healthConf)},
	{"Enable the plugin 5", (*site).controllers, "systemctl restart slurmctld"},
	{"Enable the plugin 5", (*site).nodes, "systemctl restart slurmd"},
	{"metrics.md, Set up 2", (*site).nodes, emulatedMetrics + "systemctl enable -q --now gojail-metrics.timer"},
	{"metrics.md, Metrics of the cluster", (*site).onlyHead, "systemctl enable -q --now gojail-exporter"},
}

func (s *site) controllers() []*guest { return []*guest{s.head, s.n2} }
func (s *site) onlyHead() []*guest    { return []*guest{s.head} }

// onAll runs a script as root on machines at the same time.
func onAll(guests []*guest, script string) error {
	var wg sync.WaitGroup
	results := make([]result, len(guests))
	for i, g := range guests {
		wg.Go(func() { results[i] = g.run("", script) })
	}
	wg.Wait()
	for _, r := range results {
		if r.Code != 0 {
			return fmt.Errorf("%v", r)
		}
	}
	return nil
}

// bringUp boots the machines, waits for a cluster without gojail, and installs gojail.
func (s *site) bringUp(t *testing.T) error {
	begin := time.Now()
	log := func(what string) { t.Logf("%4.0f s: %s", time.Since(begin).Seconds(), what) }
	var wg sync.WaitGroup
	failed := make([]error, 3)
	for i, g := range s.guests() {
		wait := g.waitBoot(bootTime)
		if err := g.switchOn(); err != nil {
			return err
		}
		wg.Go(func() { failed[i] = wait() })
	}
	wg.Wait()
	for _, err := range failed {
		if err != nil {
			return err
		}
	}
	log("booted")
	// degraded, where a unit has failed, is for the tests to judge.
	if err := onAll(s.guests(), "systemctl is-system-running --wait || systemctl --failed --no-legend --plain; [ \"$(systemctl is-system-running)\" != starting ]"); err != nil {
		return err
	}
	log("systemd is up")
	// The first slurmctld of a cluster ends where slurmdbd does not answer yet, which makes its tables just now.
	if !poll(10*time.Minute, func() bool { return s.head.run("", "timeout 60 sacctmgr -nP show cluster").Code == 0 }) {
		return fmt.Errorf("slurmdbd does not answer: %v", s.head.run("", "journalctl -n 60 --no-pager -u slurmdbd -u mariadb -u munge"))
	}
	for _, g := range s.controllers() {
		if err := onAll([]*guest{g}, "systemctl start slurmctld"); err != nil {
			return err
		}
	}
	if err := s.waitForCluster(); err != nil {
		return err
	}
	log("Slurm is up")
	for _, step := range installation {
		if err := onAll(step.on(s), step.script); err != nil {
			return fmt.Errorf("%s: %w", step.what, err)
		}
		log(step.what)
	}
	return s.waitForCluster()
}

// poll tries a condition until it holds.
func poll(limit time.Duration, holds func() bool) bool {
	for end := time.Now().Add(limit); ; time.Sleep(time.Second) {
		if holds() {
			return true
		}
		if time.Now().After(end) {
			return false
		}
	}
}

// listNodes returns the states of the nodes as sinfo prints them: "n1 idle n2 idle".
func (s *site) listNodes() string {
	return s.head.run("", "timeout 60 sinfo -hNo '%N %T' | sort | xargs").Stdout
}

// waitForCluster waits until both nodes are idle.
func (s *site) waitForCluster() error {
	if poll(15*time.Minute, func() bool { return s.listNodes() == "n1 idle n2 idle\n" }) {
		return nil
	}
	return fmt.Errorf("the nodes are not idle: %s%v\n%v\n%v", s.listNodes(),
		s.head.run("", "sinfo -Ro '%E %N'; squeue; scontrol ping; journalctl -n 60 --no-pager -u slurmctld -u slurmdbd -u mariadb -u munge"),
		s.n1.run("", "findmnt -t nfs4; journalctl -n 30 --no-pager -u slurmd -u munge"), s.n2.run("", "findmnt -t nfs4; journalctl -n 30 --no-pager -u slurmd -u slurmctld"))
}

// requireIdle fails a test where the nodes are not idle.
func (s *site) requireIdle(t *testing.T) {
	t.Helper()
	if err := s.waitForCluster(); err != nil {
		t.Fatal(err)
	}
}
