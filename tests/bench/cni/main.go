// SPDX-License-Identifier: Apache-2.0

// Command cni stands in for the reference CNI plugins in the bench: it is started
// once for each plugin and interface, as multus does, reads its configuration on
// standard input, and asks the kernel for what the plugin of that name asks for, with
// the library that they use (sriov-cni 1b7acc5, rdma-cni 449bfbc, plugins 3d27709f by
// reading). It keeps no journal, checks nothing, and is faster than they are.
//
//	cni sriov|host-local|sbr|tuning|rdma ADD|DEL <configuration
package main

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// conf is the configuration of all plugins of a chain.
type conf struct {
	Netns   string // path
	Device  string // name of the VF on the node
	Name    string // and in the job
	Address string // CIDR
	Gateway string
	Table   int
	State   string // directory
}

func main() {
	runtime.LockOSThread()
	var c conf
	if err := json.NewDecoder(os.Stdin).Decode(&c); err != nil {
		fail(err)
	}
	plugins := map[string]func(conf) error{
		"sriov ADD": addSRIOV, "sriov DEL": deleteSRIOV, "host-local ADD": addLocal, "host-local DEL": deleteLocal,
		"sbr ADD": addSBR, "sbr DEL": deleteSBR, "tuning ADD": setTuning, "tuning DEL": doNothing, "rdma ADD": readRDMAMode, "rdma DEL": doNothing,
	}
	f := plugins[strings.Join(os.Args[1:], " ")]
	if f == nil {
		fail(fmt.Errorf("no plugin %v", os.Args[1:]))
	}
	if err := f(c); err != nil {
		fail(fmt.Errorf("%v: %w", os.Args[1:], err))
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "cni:", err)
	os.Exit(1)
}

func doNothing(conf) error { return nil }

// runIPAM starts host-local, as each plugin that needs addresses does.
func runIPAM(c conf, verb string) error {
	text, err := json.Marshal(c)
	if err != nil {
		return err
	}
	cmd := exec.Command(os.Args[0], "host-local", verb)
	cmd.Stdin, cmd.Stderr = strings.NewReader(string(text)), os.Stderr
	return cmd.Run()
}

func enterNamespace(path string) (int, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	return fd, unix.Setns(fd, unix.CLONE_NEWNET)
}

// moveLink moves a link to the namespace fd and names it there; back enters that namespace.
func moveLink(from, to string, fd int, back func() error) error {
	l, err := netlink.LinkByName(from)
	if err != nil {
		return err
	}
	if err := netlink.LinkSetDown(l); err != nil {
		return err
	}
	if err := netlink.LinkSetNsFd(l, fd); err != nil {
		return err
	}
	if err := back(); err != nil {
		return err
	}
	return netlink.LinkSetName(l, to)
}

func addSRIOV(c conf) error {
	fd, err := unix.Open(c.Netns, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	if err := moveLink(c.Device, c.Name, fd, func() error { return unix.Setns(fd, unix.CLONE_NEWNET) }); err != nil {
		return err
	}
	if err := runIPAM(c, "ADD"); err != nil {
		return err
	}
	l, err := netlink.LinkByName(c.Name)
	if err != nil {
		return err
	}
	address, err := netlink.ParseAddr(c.Address)
	if err != nil {
		return err
	}
	if err := netlink.LinkSetUp(l); err != nil {
		return err
	}
	return netlink.AddrAdd(l, address)
}

func deleteSRIOV(c conf) error {
	host, err := unix.Open("/proc/self/ns/net", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	if _, err := enterNamespace(c.Netns); err != nil {
		return err
	}
	if err := moveLink(c.Name, c.Device, host, func() error { return unix.Setns(host, unix.CLONE_NEWNET) }); err != nil {
		return err
	}
	return runIPAM(c, "DEL")
}

func (c conf) leasePath() string {
	return filepath.Join(c.State, strings.ReplaceAll(c.Address, "/", "_"))
}

func addLocal(c conf) error {
	lock, err := os.OpenFile(filepath.Join(c.State, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX); err != nil {
		return err
	}
	return os.WriteFile(c.leasePath(), []byte(c.Name), 0o600)
}

func deleteLocal(c conf) error { return os.Remove(c.leasePath()) }

func addSBR(c conf) error {
	if _, err := enterNamespace(c.Netns); err != nil {
		return err
	}
	l, err := netlink.LinkByName(c.Name)
	if err != nil {
		return err
	}
	address, subnet, err := net.ParseCIDR(c.Address)
	if err != nil {
		return err
	}
	rule := netlink.NewRule()
	rule.Src, rule.Table = &net.IPNet{IP: address, Mask: net.CIDRMask(32, 32)}, c.Table
	if err := netlink.RuleAdd(rule); err != nil {
		return err
	}
	for _, r := range []netlink.Route{
		{LinkIndex: l.Attrs().Index, Dst: subnet, Scope: netlink.SCOPE_LINK, Table: c.Table},
		{LinkIndex: l.Attrs().Index, Gw: net.ParseIP(c.Gateway), Table: c.Table},
	} {
		if err := netlink.RouteReplace(&r); err != nil {
			return err
		}
	}
	return nil
}

func deleteSBR(c conf) error {
	if _, err := enterNamespace(c.Netns); err != nil {
		return err
	}
	rules, err := netlink.RuleListFiltered(netlink.FAMILY_V4, &netlink.Rule{Table: c.Table}, netlink.RT_FILTER_TABLE)
	for _, r := range rules {
		if err := netlink.RuleDel(&r); err != nil {
			return err
		}
	}
	return err
}

func setTuning(c conf) error {
	if _, err := enterNamespace(c.Netns); err != nil {
		return err
	}
	for name, value := range map[string]string{"rp_filter": "1", "arp_ignore": "1", "arp_announce": "2", "arp_notify": "1"} {
		if err := os.WriteFile(filepath.Join("/proc/sys/net/ipv4/conf", c.Name, name), []byte(value), 0); err != nil {
			return err
		}
	}
	return nil
}

// readRDMAMode only reads the mode: stand-ins for VFs have no RDMA devices.
func readRDMAMode(conf) error {
	netlink.RdmaSystemGetNetnsMode()
	return nil
}
