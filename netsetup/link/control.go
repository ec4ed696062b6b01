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

// The next hops of a job's default routes. They exist only in the job's neighbour table,
// so that the gateway takes no address of the node's network.
var (
	gateway4 = netip.MustParseAddr("169.254.1.1")
	gateway6 = netip.MustParseAddr("fe80::1")
)

// hostMAC is the MAC of the node's end of every control link; each link has only one other
// end. A MAC that is set at creation is not replaced by systemd's MACAddressPolicy.
var hostMAC = net.HardwareAddr{0x02, 0x67, 0x6a, 0, 0, 1}

// Control is a veth pair that connects a job's namespace with the node's. The job's end has
// an address of the node's network and the job's default route.
//
// The node answers ARP and NDP for this address on Interface (a proxy neighbour entry, not
// proxy_arp for all addresses) and forwards packets. Both neighbour tables have permanent
// entries, so no ARP or NDP is sent on the pair itself.
type Control struct {
	Name      string       // name of the node's end
	JobName   string       // name of the job's end: "ctl0"
	Interface int          // index of the node's interface in that network
	Addresses []netip.Addr // at most one of IPv4 and one of IPv6
	MTU       int          // bytes; 0: 1500
	hostOnly  bool         // the job only has to reach the node itself, so forwarding may be off
	Proc      string       // mount point of procfs
}

// AddControl creates the pair, or the missing parts of it. It does not enable forwarding,
// which is up to the administrator: if forwarding is off, AddControl changes nothing and
// fails with errForwarding, which names the sysctl. On the node it sets proxy_delay=0 and
// proxy_ndp=1 for Interface and leaves them set: other jobs rely on them, and they affect
// proxy entries only. After any other error RemoveControl cleans up.
func AddControl(host, job *Namespace, c Control) error {
	if err := c.checkForwarding(host); err != nil {
		return err
	}
	hostEnd, jobEnd, err := c.makePair(host, job)
	if err != nil {
		return fmt.Errorf("create the control link %s: %w", c.Name, err)
	}
	for _, address := range c.Addresses {
		if err := c.setUpHostEnd(host, hostEnd, jobEnd.MAC, address); err != nil {
			return fmt.Errorf("create the control link %s: on the node: %w", c.Name, err)
		}
		if err := c.setUpJobEnd(job, jobEnd.Index, address); err != nil {
			return fmt.Errorf("create the control link %s: in the job: %w", c.Name, err)
		}
	}
	return nil
}

// RemoveControl removes the pair and the node's proxy entries for it. It does not need the
// job's namespace; missing parts are no error.
func RemoveControl(host *Namespace, c Control) error {
	var errs []error
	for _, address := range c.Addresses {
		err := host.handle.NeighDel(c.buildProxy(address))
		if err != nil && !errors.Is(err, unix.ENOENT) && !errors.Is(err, unix.ENODEV) {
			errs = append(errs, explainError(err, "remove the control link %s: remove the proxy entry of %s", c.Name,
				address))
		}
	}
	l, err := host.FindByName(c.Name)
	switch {
	case errors.Is(err, ErrNotFound):
	case err != nil:
		errs = append(errs, err)
	case l.Kind != "veth":
		errs = append(errs, fmt.Errorf("remove the control link %s: it is a %s, not a veth; it stays", c.Name, l.Kind))
	default:
		errs = append(errs, host.deleteLink(l.Index))
	}
	return errors.Join(errs...)
}

// checkForwarding fails with errForwarding if the kernel does not forward packets. For IPv4
// the setting of the receiving interface counts, for IPv6 that of the node.
func (c Control) checkForwarding(host *Namespace) error {
	if c.hostOnly {
		return nil
	}
	nic, err := host.FindByIndex(c.Interface)
	if err != nil {
		return fmt.Errorf("create the control link %s: its network: %w", c.Name, err)
	}
	for _, address := range c.Addresses {
		name, do := "ipv4/conf/"+nic.Name+"/forwarding", "net.ipv4.ip_forward=1"
		if address.Is6() {
			name, do = "ipv6/conf/all/forwarding",
				"net.ipv6.conf.all.forwarding=1, and accept_ra=2 where the node needs router advertisements,"
		}
		value, err := host.ReadSysctl(c.Proc, name)
		if err != nil {
			return fmt.Errorf("create the control link %s: %w", c.Name, err)
		}
		if value == "0" {
			return fmt.Errorf("create the control link %s for %s: %w: /proc/sys/net/%s is 0; set %s in /etc/sysctl.d",
				c.Name, address, errForwarding, name, do)
		}
	}
	return nil
}

// makePair returns the two ends, set up. It uses an existing pair if its ends belong
// together.
func (c Control) makePair(host, job *Namespace) (hostEnd, jobEnd Link, err error) {
	mtu := c.MTU
	if mtu == 0 {
		mtu = 1500
	}
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.HardwareAddr, attrs.MTU = c.Name, hostMAC, mtu
	err = host.handle.LinkAdd(&netlink.Veth{
		LinkAttrs: attrs, PeerName: c.JobName, PeerHardwareAddr: deriveJobMAC(c.Addresses),
		PeerNamespace: netlink.NsFd(job.fd),
	})
	if err != nil && !errors.Is(err, unix.EEXIST) {
		return hostEnd, jobEnd, explainError(err, "add a veth pair")
	}
	exists := err != nil
	hostEnd, hostErr := host.FindByName(c.Name)
	jobEnd, jobErr := job.FindByName(c.JobName)
	if exists && (hostErr != nil || jobErr != nil || hostEnd.peer != jobEnd.Index || jobEnd.peer != hostEnd.Index ||
		hostEnd.Kind != "veth") {
		return hostEnd, jobEnd, fmt.Errorf("%w: %s on the node or %s in the job is another link; run: gojail sweep",
			ErrNameTaken, c.Name, c.JobName)
	}
	return hostEnd, jobEnd, errors.Join(hostErr, jobErr, host.SetUp(hostEnd.Index), job.SetUp(jobEnd.Index))
}

// deriveJobMAC returns the MAC of the job's end. It depends on the address only, so that
// peers see no change if the pair of a job is created again.
func deriveJobMAC(addresses []netip.Addr) net.HardwareAddr {
	if len(addresses) == 0 {
		return net.HardwareAddr{0x02, 0x67, 0x6a, 0, 0, 2}
	}
	bytes := addresses[0].AsSlice()
	return append(net.HardwareAddr{0x06, 0x67}, bytes[len(bytes)-4:]...)
}

func (c Control) setUpHostEnd(host *Namespace, end Link, jobMAC net.HardwareAddr, address netip.Addr) error {
	neighbour := buildNeighbour(end.Index, address, jobMAC)
	if err := host.handle.NeighSet(neighbour); err != nil {
		return explainError(err, "add the neighbour %s", address)
	}
	source, err := host.findSource(c.Interface, address)
	if err != nil {
		return err
	}
	to := netip.PrefixFrom(address, address.BitLen())
	if err := host.AddRoute(Route{To: to, Link: end.Index, Source: source}); err != nil {
		return err
	}
	if c.Interface == 0 {
		return nil
	}
	nic, err := host.FindByIndex(c.Interface)
	if err != nil {
		return err
	}
	if _, err := host.SetSysctls(c.Proc, c.planSysctls(nic.Name, address.Is6())); err != nil {
		return err
	}
	return explainError(host.handle.NeighSet(c.buildProxy(address)), "add a proxy entry for %s on %s", address, nic)
}

// planSysctls returns the sysctls of the node. By default a proxy answers a broadcast up to
// 0.8 s late (arp(7), proxy_delay). The pair delivers only packets from the job's address.
func (c Control) planSysctls(nic string, ipv6 bool) []Sysctl {
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

func (c Control) setUpJobEnd(job *Namespace, index int, address netip.Addr) error {
	gateway, everywhere := gateway4, netip.PrefixFrom(netip.IPv4Unspecified(), 0)
	if address.Is6() {
		gateway, everywhere = gateway6, netip.PrefixFrom(netip.IPv6Unspecified(), 0)
	}
	if err := job.AddAddress(index, netip.PrefixFrom(address, address.BitLen())); err != nil {
		return err
	}
	if err := job.handle.NeighSet(buildNeighbour(index, gateway, hostMAC)); err != nil {
		return explainError(err, "add the neighbour %s", gateway)
	}
	return job.AddRoute(Route{To: everywhere, Via: gateway, Link: index, Source: address, OnLink: true})
}

// findSource returns the node's source address for packets to the job: the first address of
// the interface.
func (n *Namespace) findSource(index int, like netip.Addr) (netip.Addr, error) {
	if index == 0 {
		return netip.Addr{}, nil
	}
	all, err := n.ListAddresses(index)
	for _, a := range all {
		if a.Addr().Is4() == like.Is4() && !a.Addr().IsLinkLocalUnicast() {
			return a.Addr(), nil
		}
	}
	return netip.Addr{}, err
}

func buildNeighbour(index int, address netip.Addr, mac net.HardwareAddr) *netlink.Neigh {
	return &netlink.Neigh{LinkIndex: index, Family: familyOf(address), State: unix.NUD_PERMANENT, IP: address.AsSlice(),
		HardwareAddr: mac}
}

func (c Control) buildProxy(address netip.Addr) *netlink.Neigh {
	return &netlink.Neigh{LinkIndex: c.Interface, Family: familyOf(address), Flags: unix.NTF_PROXY,
		IP: address.AsSlice()}
}
