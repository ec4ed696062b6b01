// SPDX-License-Identifier: Apache-2.0

package job

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/netsetup/link"
)

// The states of an interface.
const (
	Up             = "up"
	stateDown      = "down"
	stateNoCarrier = "no carrier"
	stateMissing   = "missing" // named by a variable, but not found
)

// controlRail is the name of the interface with a job's default route.
const controlRail = "ctl0"

// Rail is a job's interface on one rail, or its control interface.
type Rail struct {
	Rail      string         `json:"rail"` // "": unknown, as there are no variables
	Interface string         `json:"interface"`
	Addresses []netip.Prefix `json:"addresses"`
	Gateways  []netip.Addr   `json:"gateways"`
	RDMA      []string       `json:"rdma"`
	PCI       string         `json:"pci,omitempty"`
	State     string         `json:"state"`

	index  int
	wanted []netip.Addr // addresses by its variable
	device []string     // RDMA devices by its variable
	active bool         // whether the first port of each device is active
}

// View is the network of a job.
type View struct {
	Control *Rail  `json:"control"` // nil: no control interface
	Rails   []Rail `json:"rails"`
}

// netName matches the names of rails' interfaces, which package attach assigns.
var netName = regexp.MustCompile(`^net[0-9]+$`)

// ReadView returns the rails that the GOJAIL_NET_ variables name, with the kernel's state of
// them. Without variables, every net<N> is a rail. sys is a sysfs of the job's network
// namespace.
func ReadView(get func(string) string, sys string) (*View, error) {
	links, err := netlink.LinkList()
	if err != nil {
		return nil, fmt.Errorf("list the network interfaces: %w", err)
	}
	v := &View{Rails: []Rail{}}
	for _, name := range splitFields(get("GOJAIL_NET_RAILS")) {
		variable := "GOJAIL_NET_" + strings.ToUpper(strings.ReplaceAll(name, "-", "_")) + "_"
		r := Rail{Rail: name, Interface: get(variable + "IFNAME"), PCI: get(variable + "PCI"),
			device: splitFields(get(variable + "RDMA"))}
		for _, text := range splitFields(get(variable + "ADDRESS")) {
			text, _, _ = strings.Cut(text, "/")
			if a, err := netip.ParseAddr(text); err == nil {
				r.wanted = append(r.wanted, a)
			}
		}
		v.Rails = append(v.Rails, r)
	}
	named := len(v.Rails) > 0
	for _, l := range links {
		switch name := l.Attrs().Name; {
		case name == controlRail:
			v.Control = &Rail{Rail: "control", Interface: name}
		case !named && netName.MatchString(name):
			v.Rails = append(v.Rails, Rail{Interface: name})
		}
	}
	for i := range v.Rails {
		if err := v.Rails[i].readState(links, sys); err != nil {
			return nil, err
		}
	}
	if v.Control != nil {
		err = v.Control.readState(links, sys)
	}
	return v, err
}

func splitFields(text string) []string {
	return strings.FieldsFunc(text, func(c rune) bool { return c == ',' || c == ' ' })
}

// readState reads the kernel's state of one interface.
func (r *Rail) readState(links []netlink.Link, sys string) error {
	r.Addresses, r.Gateways, r.RDMA, r.State = []netip.Prefix{}, []netip.Addr{}, []string{}, stateMissing
	if r.Interface == "" { // a card that has RDMA devices alone
		r.State = Up
		r.readRDMADevices(sys)
		return nil
	}
	i := slices.IndexFunc(links, func(l netlink.Link) bool { return l.Attrs().Name == r.Interface })
	if i < 0 {
		return nil
	}
	a := links[i].Attrs()
	r.index = a.Index
	if a.ParentDevBus == "pci" {
		r.PCI = a.ParentDev
	}
	switch {
	case a.RawFlags&unix.IFF_UP == 0:
		r.State = stateDown
	case a.RawFlags&unix.IFF_RUNNING == 0:
		r.State = stateNoCarrier
	default:
		r.State = Up
	}
	if err := r.readAddresses(links[i]); err != nil {
		return err
	}
	r.readRDMADevices(sys)
	return r.readGateways()
}

// readRDMADevices reads the RDMA devices of the interface's PCI device.
func (r *Rail) readRDMADevices(sys string) {
	if r.PCI == "" {
		return
	}
	dir := filepath.Join(sys, "bus/pci/devices", r.PCI, "infiniband")
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		r.RDMA = append(r.RDMA, e.Name())
	}
	r.active = !slices.ContainsFunc(r.device, func(device string) bool {
		state, _ := os.ReadFile(filepath.Join(dir, device, "ports/1/state"))
		return !strings.Contains(string(state), "ACTIVE") // "4: ACTIVE"
	})
}

// readAddresses reads the addresses without those that the kernel assigned itself.
func (r *Rail) readAddresses(l netlink.Link) error {
	found, err := netlink.AddrList(l, netlink.FAMILY_ALL)
	if err != nil {
		return fmt.Errorf("list the addresses of %s: %w", r.Interface, err)
	}
	for _, a := range found {
		ip, _ := netip.AddrFromSlice(a.IP)
		length, _ := a.Mask.Size()
		if ip = ip.Unmap(); ip.Is4() || !ip.IsLinkLocalUnicast() {
			r.Addresses = append(r.Addresses, netip.PrefixFrom(ip, length))
		}
	}
	return nil
}

// readGateways reads the next hops of the interface's default routes in all tables.
func (r *Rail) readGateways() error {
	for _, family := range []int{netlink.FAMILY_V4, netlink.FAMILY_V6} {
		routes, err := netlink.RouteListFiltered(family, &netlink.Route{LinkIndex: r.index},
			netlink.RT_FILTER_OIF|netlink.RT_FILTER_TABLE)
		if err != nil {
			return fmt.Errorf("list the routes of %s: %w", r.Interface, err)
		}
		for _, route := range routes {
			ip, isIP := netip.AddrFromSlice(route.Gw)
			ip = ip.Unmap()
			if link.IsDefault(route) && isIP && !slices.Contains(r.Gateways, ip) {
				r.Gateways = append(r.Gateways, ip)
			}
		}
	}
	return nil
}

// findMissing returns the addresses that the rail should have but does not have.
func (r *Rail) findMissing() []netip.Addr {
	var none []netip.Addr
	for _, want := range r.wanted {
		if !slices.ContainsFunc(r.Addresses, func(p netip.Prefix) bool { return p.Addr() == want }) {
			none = append(none, want)
		}
	}
	return none
}
