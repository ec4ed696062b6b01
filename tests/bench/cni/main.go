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

// conf is what all plugins of a chain get.
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
		"sriov ADD": sriovAdd, "sriov DEL": sriovDel, "host-local ADD": localAdd, "host-local DEL": localDel,
		"sbr ADD": sbrAdd, "sbr DEL": sbrDel, "tuning ADD": tuning, "tuning DEL": none, "rdma ADD": rdma, "rdma DEL": none,
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

func none(conf) error { return nil }

// ipam starts another plugin, as every one that needs addresses does.
func ipam(c conf, verb string) error {
	text, err := json.Marshal(c)
	if err != nil {
		return err
	}
	cmd := exec.Command(os.Args[0], "host-local", verb)
	cmd.Stdin, cmd.Stderr = strings.NewReader(string(text)), os.Stderr
	return cmd.Run()
}

func enter(path string) (int, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	return fd, unix.Setns(fd, unix.CLONE_NEWNET)
}

// move takes a link into the namespace fd, where it gets its name.
func move(from, to string, fd int, back func() error) error {
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

func sriovAdd(c conf) error {
	fd, err := unix.Open(c.Netns, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	if err := move(c.Device, c.Name, fd, func() error { return unix.Setns(fd, unix.CLONE_NEWNET) }); err != nil {
		return err
	}
	if err := ipam(c, "ADD"); err != nil {
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

func sriovDel(c conf) error {
	host, err := unix.Open("/proc/self/ns/net", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	if _, err := enter(c.Netns); err != nil {
		return err
	}
	if err := move(c.Name, c.Device, host, func() error { return unix.Setns(host, unix.CLONE_NEWNET) }); err != nil {
		return err
	}
	return ipam(c, "DEL")
}

func (c conf) lease() string { return filepath.Join(c.State, strings.ReplaceAll(c.Address, "/", "_")) }

func localAdd(c conf) error {
	lock, err := os.OpenFile(filepath.Join(c.State, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX); err != nil {
		return err
	}
	return os.WriteFile(c.lease(), []byte(c.Name), 0o600)
}

func localDel(c conf) error { return os.Remove(c.lease()) }

func sbrAdd(c conf) error {
	if _, err := enter(c.Netns); err != nil {
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

func sbrDel(c conf) error {
	if _, err := enter(c.Netns); err != nil {
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

func tuning(c conf) error {
	if _, err := enter(c.Netns); err != nil {
		return err
	}
	for name, value := range map[string]string{"rp_filter": "1", "arp_ignore": "1", "arp_announce": "2", "arp_notify": "1"} {
		if err := os.WriteFile(filepath.Join("/proc/sys/net/ipv4/conf", c.Name, name), []byte(value), 0); err != nil {
			return err
		}
	}
	return nil
}

// rdma only asks for the mode: stand-ins for VFs have no RDMA devices.
func rdma(conf) error {
	netlink.RdmaSystemGetNetnsMode()
	return nil
}
