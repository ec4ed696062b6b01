// SPDX-License-Identifier: Apache-2.0

package link

import (
	"errors"
	"fmt"
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// The next hops of a job's default routes. They exist in the job's neighbour
// table only, so no address of the node's network goes to a gateway.
var (
	gateway4 = netip.MustParseAddr("169.254.1.1")
	gateway6 = netip.MustParseAddr("fe80::1")
)

// hostMAC is the node's end of every control link: each has one other end only.
// A MAC that is given at creation is not replaced by systemd's MACAddressPolicy.
var hostMAC = net.HardwareAddr{0x02, 0x67, 0x6a, 0, 0, 1}

// Control is a veth pair that connects a job's namespace with the node's: the
// job's end has an address of the node's network, and the job's default route.
//
// The node answers ARP and NDP for just that address on Interface (a proxy
// neighbour entry, not proxy_arp for everything), and forwards. Both neighbour
// tables have permanent entries: nobody asks on the pair itself.
type Control struct {
	Name      string       // of the node's end
	JobName   string       // of the job's end: "ctl0"
	Interface int          // index of the node's interface that has the network
	Addresses []netip.Addr // at most one of IPv4 and one of IPv6
	MTU       int          // bytes; 0: 1500
	hostOnly  bool         // it is enough if the job reaches the node itself: forwarding may be off
	Proc      string       // where procfs is mounted
}

// AddControl makes the pair, or what is missing of it. Forwarding is the
// administrator's: if it is off nothing is changed, and the error is
// errForwarding and names the sysctl. On the node it sets proxy_delay=0 and
// proxy_ndp=1 for Interface, and leaves them: other jobs rely on them, and they
// concern proxy entries only. After any other error RemoveControl clears up.
func AddControl(host, job *Namespace, c Control) error {
	if err := c.forwarding(host); err != nil {
		return err
	}
	mine, theirs, err := c.pair(host, job)
	if err != nil {
		return fmt.Errorf("make the control link %s: %w", c.Name, err)
	}
	for _, address := range c.Addresses {
		if err := c.hostSide(host, mine, theirs.MAC, address); err != nil {
			return fmt.Errorf("make the control link %s: on the node: %w", c.Name, err)
		}
		if err := c.jobSide(job, theirs.Index, address); err != nil {
			return fmt.Errorf("make the control link %s: in the job: %w", c.Name, err)
		}
	}
	return nil
}

// RemoveControl removes the pair and what the node answered for it. It needs no
// job's namespace, and is no error where all or some of it is gone.
func RemoveControl(host *Namespace, c Control) error {
	var errs []error
	for _, address := range c.Addresses {
		err := host.handle.NeighDel(c.proxy(address))
		if err != nil && !errors.Is(err, unix.ENOENT) && !errors.Is(err, unix.ENODEV) {
			errs = append(errs, failed(err, "remove the control link %s: no longer answer for %s", c.Name, address))
		}
	}
	l, err := host.ByName(c.Name)
	switch {
	case errors.Is(err, ErrNotFound):
	case err != nil:
		errs = append(errs, err)
	case l.Kind != "veth":
		errs = append(errs, fmt.Errorf("remove the control link %s: it is a %s, not a veth; left alone", c.Name, l.Kind))
	default:
		errs = append(errs, host.delete(l.Index))
	}
	return errors.Join(errs...)
}

// forwarding: of IPv4 it is a matter of the interface that a packet comes in by, of IPv6 of the node.
func (c Control) forwarding(host *Namespace) error {
	if c.hostOnly {
		return nil
	}
	nic, err := host.ByIndex(c.Interface)
	if err != nil {
		return fmt.Errorf("make the control link %s: its network: %w", c.Name, err)
	}
	for _, address := range c.Addresses {
		name, do := "ipv4/conf/"+nic.Name+"/forwarding", "net.ipv4.ip_forward=1"
		if address.Is6() {
			name, do = "ipv6/conf/all/forwarding", "net.ipv6.conf.all.forwarding=1, and accept_ra=2 where the node needs router advertisements,"
		}
		value, err := host.Sysctl(c.Proc, name)
		if err != nil {
			return fmt.Errorf("make the control link %s: %w", c.Name, err)
		}
		if value == "0" {
			return fmt.Errorf("make the control link %s for %s: %w: /proc/sys/net/%s is 0; set %s in /etc/sysctl.d", c.Name, address, errForwarding, name, do)
		}
	}
	return nil
}

// pair returns the two ends, up. An old pair is used again if it is this one.
func (c Control) pair(host, job *Namespace) (mine, theirs Link, err error) {
	mtu := c.MTU
	if mtu == 0 {
		mtu = 1500
	}
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.HardwareAddr, attrs.MTU = c.Name, hostMAC, mtu
	err = host.handle.LinkAdd(&netlink.Veth{
		LinkAttrs: attrs, PeerName: c.JobName, PeerHardwareAddr: jobMAC(c.Addresses), PeerNamespace: netlink.NsFd(job.fd),
	})
	if err != nil && !errors.Is(err, unix.EEXIST) {
		return mine, theirs, failed(err, "add a veth pair")
	}
	exists := err != nil
	mine, err1 := host.ByName(c.Name)
	theirs, err2 := job.ByName(c.JobName)
	if exists && (err1 != nil || err2 != nil || mine.peer != theirs.Index || theirs.peer != mine.Index || mine.Kind != "veth") {
		return mine, theirs, fmt.Errorf("%w: %s on the node or %s in the job is another link; sweep", ErrNameTaken, c.Name, c.JobName)
	}
	return mine, theirs, errors.Join(err1, err2, host.Up(mine.Index), job.Up(theirs.Index))
}

// jobMAC is fixed by the address, so that a job that is made again is the same to its peers.
func jobMAC(addresses []netip.Addr) net.HardwareAddr {
	if len(addresses) == 0 {
		return net.HardwareAddr{0x02, 0x67, 0x6a, 0, 0, 2}
	}
	bytes := addresses[0].AsSlice()
	return append(net.HardwareAddr{0x06, 0x67}, bytes[len(bytes)-4:]...)
}

func (c Control) hostSide(host *Namespace, mine Link, theirs net.HardwareAddr, address netip.Addr) error {
	neighbour := permanent(mine.Index, address, theirs)
	if err := host.handle.NeighSet(neighbour); err != nil {
		return failed(err, "add the neighbour %s", address)
	}
	source, err := host.source(c.Interface, address)
	if err != nil {
		return err
	}
	to := netip.PrefixFrom(address, address.BitLen())
	if err := host.AddRoute(Route{To: to, Link: mine.Index, Source: source}); err != nil {
		return err
	}
	if c.Interface == 0 {
		return nil
	}
	nic, err := host.ByIndex(c.Interface)
	if err != nil {
		return err
	}
	if _, err := host.SetSysctls(c.Proc, c.sysctls(nic.Name, address.Is6())); err != nil {
		return err
	}
	return failed(host.handle.NeighSet(c.proxy(address)), "answer for %s on %s", address, nic)
}

// sysctls of the node. A proxy answers a broadcast up to 0.8 s late by default
// (arp(7), proxy_delay). From the pair comes nothing but the job's address.
func (c Control) sysctls(nic string, ipv6 bool) []Sysctl {
	if ipv6 {
		return []Sysctl{
			{"ipv6/neigh/" + nic + "/proxy_delay", "0"}, {"ipv6/conf/" + nic + "/proxy_ndp", "1"},
			{"ipv6/conf/" + c.Name + "/accept_ra", "0"},
		}
	}
	set := []Sysctl{{"ipv4/neigh/" + nic + "/proxy_delay", "0"}, {"ipv4/conf/" + c.Name + "/rp_filter", "1"}}
	if !c.hostOnly {
		set = append(set, Sysctl{"ipv4/conf/" + c.Name + "/forwarding", "1"})
	}
	return set
}

func (c Control) jobSide(job *Namespace, index int, address netip.Addr) error {
	gateway, everywhere := gateway4, netip.PrefixFrom(netip.IPv4Unspecified(), 0)
	if address.Is6() {
		gateway, everywhere = gateway6, netip.PrefixFrom(netip.IPv6Unspecified(), 0)
	}
	if err := job.AddAddress(index, netip.PrefixFrom(address, address.BitLen())); err != nil {
		return err
	}
	if err := job.handle.NeighSet(permanent(index, gateway, hostMAC)); err != nil {
		return failed(err, "add the neighbour %s", gateway)
	}
	return job.AddRoute(Route{To: everywhere, Via: gateway, Link: index, Source: address, OnLink: true})
}

// source is the node's address that the job sees: the first one of Interface.
func (n *Namespace) source(index int, like netip.Addr) (netip.Addr, error) {
	if index == 0 {
		return netip.Addr{}, nil
	}
	all, err := n.Addresses(index)
	for _, a := range all {
		if a.Addr().Is4() == like.Is4() && !a.Addr().IsLinkLocalUnicast() {
			return a.Addr(), nil
		}
	}
	return netip.Addr{}, err
}

func permanent(index int, address netip.Addr, mac net.HardwareAddr) *netlink.Neigh {
	return &netlink.Neigh{LinkIndex: index, Family: family(address), State: unix.NUD_PERMANENT, IP: address.AsSlice(), HardwareAddr: mac}
}

func (c Control) proxy(address netip.Addr) *netlink.Neigh {
	return &netlink.Neigh{LinkIndex: c.Interface, Family: family(address), Flags: unix.NTF_PROXY, IP: address.AsSlice()}
}
