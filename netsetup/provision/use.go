// SPDX-License-Identifier: Apache-2.0

package provision

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/gojail/gojail/internal/procfs"
	"github.com/gojail/gojail/internal/trusted"
	"github.com/gojail/gojail/netsetup/config"
	"github.com/gojail/gojail/netsetup/inventory"
	"github.com/gojail/gojail/netsetup/link"
	"github.com/gojail/gojail/netsetup/netns"
	"github.com/gojail/gojail/netsetup/policy"
)

// FindUses returns why the node cannot spare the cards that its policies give whole, by PCI address. A card that is
// missing in the result may be given to a job. It asks the kernel only if there is such a card.
func FindUses(ns *link.Namespace, roots inventory.Roots, cfg *config.Config, cards []policy.Card) (map[string]string,
	error) {
	isWhole := func(c policy.Card) bool { return c.Whole != nil && c.PF.Name() != "" }
	if !slices.ContainsFunc(cards, isWhole) {
		return nil, nil
	}
	u := uses{ns: ns, roots: roots, control: cfg.Control.Interface}
	u.readSockets, u.readServers = sync.OnceValues(u.listSockets), sync.OnceValues(u.listServers)
	var err error
	if u.links, err = ns.ListLinks(); err != nil {
		return nil, err
	}
	if u.usages, err = ns.ReadUsages(); err != nil {
		return nil, err
	}
	found := map[string]string{}
	for _, c := range cards {
		if !isWhole(c) {
			continue
		}
		if why := u.explain(c.PF); why != "" {
			found[c.PF.PCI] = why
		}
	}
	return found, nil
}

// uses is what is known of the node's use of its interfaces.
type uses struct {
	ns      *link.Namespace
	roots   inventory.Roots
	control string // interface of [control]; "": that of the default route
	links   []link.Link
	usages  map[int]*link.Usage

	readSockets func() ([]socket, error) // once for all cards; likewise below
	readServers func() ([]server, error)
}

// socket is a TCP socket, and server the server of a mounted file system.
type (
	socket struct{ local, remote netip.AddrPort }
	server struct {
		address    netip.Addr
		mountpoint string
	}
)

// explain returns how the node uses a card, "" if it does not.
func (u *uses) explain(pf *inventory.PF) string {
	if len(pf.Names) > 1 {
		return fmt.Sprintf("it has the interfaces %s, and a job gets one on each rail", strings.Join(pf.Names, " and "))
	}
	i := slices.IndexFunc(u.links, func(l link.Link) bool { return l.Name == pf.Name() })
	if i < 0 {
		return ""
	}
	l := u.links[i]
	usage := u.usages[l.Index]
	if usage == nil {
		return ""
	}
	for _, why := range []func(link.Link, *link.Usage) string{u.explainStack, u.explainManager, explainRoutes,
		u.explainControl, u.explainConnection, u.explainMount} {
		if text := why(l, usage); text != "" {
			return text
		}
	}
	return ""
}

// explainStack returns the bond, bridge, VLAN or the like that is made of the interface.
func (u *uses) explainStack(l link.Link, _ *link.Usage) string {
	for _, o := range u.links {
		if l.Master != 0 && o.Index == l.Master {
			return fmt.Sprintf("%s belongs to the %s %s", l.Name, o.Kind, o.Name)
		}
		if o.Below == l.Index && o.Index != l.Index {
			return fmt.Sprintf("the %s %s is made of %s", o.Kind, o.Name, l.Name)
		}
	}
	return ""
}

// explainManager returns the daemon that configures the interface, and would do so again when it comes back. The files
// are those in which NetworkManager and systemd-networkd keep the state of an interface.
func (u *uses) explainManager(l link.Link, _ *link.Usage) string {
	for _, m := range []struct{ file, mark, text string }{
		{"NetworkManager/devices", "managed=true",
			"NetworkManager has %s; list its MAC address in unmanaged-devices of NetworkManager.conf(5), and " +
				"run: nmcli device set %[1]s managed no"},
		{"systemd/netif/links", "ADMIN_STATE=config",
			"systemd-networkd has %s; write Unmanaged=yes into a .network file with its PermanentMACAddress=, " +
				"and run: networkctl reload"},
	} {
		state, err := os.ReadFile(filepath.Join(u.roots.Run, m.file, strconv.Itoa(l.Index)))
		if err == nil && strings.Contains(string(state), m.mark) {
			return fmt.Sprintf(m.text, l.Name)
		}
	}
	return ""
}

// explainRoutes returns what cannot be restored, or what the node needs: its default route.
func explainRoutes(l link.Link, u *link.Usage) string {
	switch {
	case u.Default:
		return "a default route leads through " + l.Name
	case u.Shared:
		return fmt.Sprintf("a route with several next hops leads through %s; remove it", l.Name)
	case u.Leased.IsValid():
		return fmt.Sprintf("%s of %s is of DHCP, whose client configures it; end that for %[2]s", u.Leased, l.Name)
	}
	return ""
}

// explainControl returns whether jobs reach slurmctld through the interface.
func (u *uses) explainControl(l link.Link, _ *link.Usage) string {
	if u.control != "" && (l.Name == u.control || slices.Contains(l.AltNames, u.control)) {
		return l.Name + " is the interface of [control]"
	}
	return ""
}

// explainConnection returns a TCP socket of the node that uses an address of the interface: of slurmd, of NFS, of sshd.
func (u *uses) explainConnection(l link.Link, usage *link.Usage) string {
	if len(usage.Prefixes) == 0 {
		return ""
	}
	sockets, err := u.readSockets()
	if err != nil {
		return fmt.Sprintf("the connections of %s are unknown: %v", l.Name, err)
	}
	for _, s := range sockets {
		switch {
		case !slices.ContainsFunc(usage.Prefixes, func(p netip.Prefix) bool { return p.Addr() == s.local.Addr() }):
		case s.remote.Port() == 0:
			return fmt.Sprintf("a program listens on %s, an address of %s", s.local, l.Name)
		default:
			return fmt.Sprintf("a connection from %s to %s uses an address of %s", s.local, s.remote, l.Name)
		}
	}
	return ""
}

// listSockets returns the TCP sockets of the node's namespace that a program of the node has. One of a user, whose job
// has no network of its own, must not keep the card from jobs of others.
func (u *uses) listSockets() (all []socket, err error) {
	err = netns.RunInside(u.ns.FD(), func() error {
		for _, name := range []string{"tcp", "tcp6"} {
			text, err := os.ReadFile(filepath.Join(u.roots.Proc, "thread-self/net", name))
			if err != nil && !os.IsNotExist(err) { // a kernel without IPv6
				return err
			}
			for line := range strings.Lines(string(text)) {
				fields := strings.Fields(line)
				if len(fields) < 8 || fields[3] == tcpTimeWait || fields[3] == tcpClose || isOfPerson(fields[7]) {
					continue
				}
				if local, ok := parseSocket(fields[1]); ok {
					remote, _ := parseSocket(fields[2])
					all = append(all, socket{local, remote})
				}
			}
		}
		return nil
	})
	return all, err
}

// isOfPerson reports whether a uid of /proc/net/tcp is a person's.
func isOfPerson(text string) bool {
	uid, err := strconv.ParseUint(text, 10, 32)
	return err == nil && trusted.IsPerson(uint32(uid))
}

// States of a socket that no program has any more (net/tcp_states.h).
const (
	tcpTimeWait = "06"
	tcpClose    = "07"
)

// parseSocket reads an address and port of /proc/net/tcp (proc_net(5)), "0100007F:0016": words in the order of the
// machine.
func parseSocket(text string) (netip.AddrPort, bool) {
	words, digits, _ := strings.Cut(text, ":")
	port, err := strconv.ParseUint(digits, 16, 16)
	raw, hexErr := hex.DecodeString(words)
	if err != nil || hexErr != nil || len(raw)%4 != 0 {
		return netip.AddrPort{}, false
	}
	for i := 0; i < len(raw); i += 4 {
		binary.NativeEndian.PutUint32(raw[i:], binary.BigEndian.Uint32(raw[i:]))
	}
	address, ok := netip.AddrFromSlice(raw)
	return netip.AddrPortFrom(address.Unmap(), uint16(port)), ok
}

// explainMount returns a mounted file system whose server is reached through the interface, also by RDMA.
func (u *uses) explainMount(l link.Link, _ *link.Usage) string {
	servers, err := u.readServers()
	if err != nil {
		return fmt.Sprintf("the file systems that need %s are unknown: %v", l.Name, err)
	}
	for _, s := range servers {
		if u.ns.FindRouteLink(s.address) == l.Index {
			return fmt.Sprintf("%s is mounted from %s, to which %s leads", s.mountpoint, s.address, l.Name)
		}
	}
	return ""
}

// listServers returns the servers of mounted file systems.
func (u *uses) listServers() (all []server, err error) {
	mounts, err := procfs.ReadMounts(filepath.Join(u.roots.Proc, "self"))
	for _, m := range mounts {
		for _, address := range parseServers(m.Source, m.VFSOptions) {
			all = append(all, server{address, m.Mountpoint})
		}
	}
	return all, err
}

// parseServers returns the addresses of a file system's servers: of the option addr (NFS, SMB), and of a source of
// Lustre, "10.0.0.1@o2ib:10.0.0.2@o2ib:/fs".
func parseServers(source, options string) (servers []netip.Addr) {
	add := func(text string) {
		if a, err := netip.ParseAddr(text); err == nil && !a.IsLoopback() {
			servers = append(servers, a)
		}
	}
	for option := range strings.SplitSeq(options, ",") {
		if text, found := strings.CutPrefix(option, "addr="); found {
			add(text)
		}
	}
	for word := range strings.FieldsFuncSeq(source, func(c rune) bool { return c == ':' || c == ',' }) {
		if text, _, found := strings.Cut(word, "@"); found {
			add(text)
		}
	}
	return servers
}
