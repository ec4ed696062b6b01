// SPDX-License-Identifier: Apache-2.0

package attach

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/gojail/gojail/netsetup/config"
	"github.com/gojail/gojail/netsetup/link"
)

// setSysctls makes an interface answer for its own address only, with its own MAC. By default, Linux answers ARP on
// every interface for all addresses of the namespace (arp_ignore in ip-sysctl.rst), and one rail would answer for
// another: the rules for routes do not prevent that.
func (r *rail) setSysctls(context.Context) error {
	conf4, conf6 := "ipv4/conf/"+r.entry.Name+"/", "ipv6/conf/"+r.entry.Name+"/"
	_, err := r.job.SetSysctls(r.site.Roots.Proc, []link.Sysctl{
		{Name: conf4 + "rp_filter", Value: "1"},
		{Name: conf4 + "arp_ignore", Value: "1"},
		{Name: conf4 + "arp_announce", Value: "2"},
		{Name: conf4 + "arp_notify", Value: "1"},
	})
	if err != nil {
		return err
	}
	ipv6 := slices.ContainsFunc(r.config.Pools, func(p *config.Pool) bool { return !p.IsIPv4() })
	set := []link.Sysctl{{Name: conf6 + "accept_ra", Value: "0"}, {Name: conf6 + "ndisc_notify", Value: "1"}}
	if ipv6 {
		set = append(set, link.Sysctl{Name: conf6 + "disable_ipv6", Value: "0"})
	}
	_, err = r.job.SetSysctls(r.site.Roots.Proc, set)
	if errors.Is(err, fs.ErrNotExist) && !ipv6 {
		return nil // a kernel without IPv6
	}
	return err
}

// setUp sets the interface up. Before that, setSysctls has made it silent about other addresses.
func (r *rail) setUp(context.Context) error { return r.job.SetUp(r.index) }

// waitForCarrier waits for the carrier. On InfiniBand it appears when the subnet manager has activated the port.
func (r *rail) waitForCarrier(ctx context.Context) error {
	if r.site.Config.Probe.Carrier == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, r.site.Config.Probe.Carrier,
		fmt.Errorf("none after %v", r.site.Config.Probe.Carrier))
	defer cancel()
	err := r.job.WaitCarrier(ctx, r.index)
	noCarrier := new(link.NoCarrierError)
	if errors.As(err, &noCarrier) {
		if pf, findErr := r.site.hardware.find(r.host, r.entry.PF); findErr == nil {
			err = fmt.Errorf("%w (the PF %s is %s)", err, r.entry.PFName, describeLink(pf))
		}
	}
	return err
}

// describeLink describes the state of a PF, which decides whether its VFs have a carrier.
func describeLink(l link.Link) string {
	switch {
	case !l.Up:
		return "down"
	case !l.Running:
		return "up, without carrier"
	}
	return "up, with carrier"
}
