// SPDX-License-Identifier: Apache-2.0

package attach

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/netsetup/link"
)

// BenchmarkAttach and BenchmarkRelease are of one job, without a control interface.
// Stand-ins are found by a dump of all links, as VFs are.
func BenchmarkAttach(b *testing.B)  { measured(b, true) }
func BenchmarkRelease(b *testing.B) { measured(b, false) }

func measured(b *testing.B, attach bool) {
	for _, rails := range []int{1, 8} {
		for name, probe := range map[string]string{"probes off": "conflict = false\ngateway = false", "probes on": "timeout = \"10ms\""} {
			b.Run(fmt.Sprintf("%d rails, %s", rails, name), func(b *testing.B) {
				n := newNode(b, setup{cards: rails, probe: probe})
				n.site.Hardware.Find = byMAC(n)
				job := jobSpace(b)
				for b.Loop() {
					if !attach {
						b.StopTimer()
					}
					_, err := Attach(b.Context(), n.site, Job{ID: "4711", Netns: job.FD()})
					require.NoError(b, err)
					if attach {
						b.StopTimer()
					} else {
						b.StartTimer()
					}
					require.NoError(b, Release(b.Context(), n.site, "4711"))
					if attach {
						b.StartTimer()
					}
				}
			})
		}
	}
}

// byMAC finds stand-ins by their MACs, which costs what finding VFs by their PCI addresses does.
func byMAC(n *node) func(*link.Namespace, string) (link.Link, error) {
	addresses, names := map[string]string{}, map[string]string{}
	for i := range n.cards {
		names[card(i).PCI] = card(i).Name
		for v := range n.vfs {
			addresses[card(i).VF(v)] = vfMAC(card(i), v).String()
		}
	}
	return func(ns *link.Namespace, pci string) (link.Link, error) {
		links, err := ns.Links()
		if err != nil {
			return link.Link{}, err
		}
		for _, l := range links {
			if l.Kind == "macvlan" && l.MAC.String() == addresses[pci] || names[pci] != "" && l.Name == names[pci] {
				return l, nil
			}
		}
		return link.Link{}, fmt.Errorf("find %s: %w", pci, link.ErrNotFound)
	}
}
