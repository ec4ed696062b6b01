// SPDX-License-Identifier: Apache-2.0

package fakesys

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strconv"

	"github.com/stretchr/testify/require"
)

// Card is a PF. VF i of 0000:86:00.0 has the address 0000:86:01.0 plus i; the VFs of
// function 1 start at 0000:86:09.0.
type Card struct {
	PCI, Under, Name string
	NUMA             int
	CPUs             string
	TotalVFs         int    // 0: a plain NIC
	NumVFs           int    // VFs that exist from the start, with drivers
	InfiniBand       bool   // else Ethernet
	RDMA             string // name of the RDMA device, "mlx5_0"; the VFs' are <RDMA>v<i>
	Driver           string // default "mlx5_core"
}

// AddCard creates a card and its VFs.
func (n *Tree) AddCard(c Card) {
	n.t.Helper()
	if c.Driver == "" {
		c.Driver = "mlx5_core"
	}
	files := map[string]string{"device": "0x1017"}
	if c.TotalVFs > 0 {
		maps.Copy(files, map[string]string{"sriov_totalvfs": strconv.Itoa(c.TotalVFs), "sriov_numvfs": "0", "sriov_drivers_autoprobe": "1"})
	}
	n.cards[c.PCI] = c
	n.makeFunction(c, c.PCI, files)
	n.bindDriver(c, c.PCI, c.Name, c.RDMA, 0)
	for i := range c.NumVFs {
		n.addVF(c, i)
		n.bindVF(c, i)
	}
	if c.NumVFs > 0 {
		n.WriteFile(n.DevicePath(c.PCI)+"/sriov_numvfs", strconv.Itoa(c.NumVFs))
	}
}

func (n *Tree) makeFunction(c Card, pci string, files map[string]string) {
	all := map[string]string{"vendor": "0x15b3", "class": "0x020000",
		"numa_node": strconv.Itoa(c.NUMA), "local_cpulist": c.CPUs}
	maps.Copy(all, files)
	n.makeDevice(pci, c.Under, all)
}

// VFAddress returns the PCI address of a card's VF.
func (c Card) VFAddress(i int) string {
	function := int(c.PCI[len(c.PCI)-1] - '0')
	return fmt.Sprintf("%s%02x.%x", c.PCI[:len(c.PCI)-4], 1+8*function+i/8, i%8)
}

func (n *Tree) addVF(c Card, i int) {
	n.makeFunction(c, c.VFAddress(i), map[string]string{"device": "0x1018"})
	n.makeLink(n.DevicePath(c.VFAddress(i)), fmt.Sprintf("%s/virtfn%d", n.DevicePath(c.PCI), i))
	n.makeLink(n.DevicePath(c.PCI), n.DevicePath(c.VFAddress(i))+"/physfn")
}

func (n *Tree) removeVFs(c Card) {
	links, _ := filepath.Glob(n.DevicePath(c.PCI) + "/virtfn*")
	for _, link := range links {
		target, err := os.Readlink(link)
		require.NoError(n.t, err)
		require.NoError(n.t, os.Remove(link))
		n.RemoveDevice(filepath.Base(target))
	}
}

func (n *Tree) bindVF(c Card, i int) {
	rdma := ""
	if c.RDMA != "" {
		rdma = fmt.Sprintf("%sv%d", c.RDMA, i)
	}
	n.bindDriver(c, c.VFAddress(i), fmt.Sprintf("%sv%d", c.Name, i), rdma, i+1)
}

// bindDriver gives a function its driver, and with it an interface and an RDMA device.
func (n *Tree) bindDriver(c Card, pci, name, rdma string, number int) {
	dir := n.DevicePath(pci)
	n.WriteFile(n.Sys+"/bus/pci/drivers/"+c.Driver+"/unbind", "")
	n.makeLink(n.Sys+"/bus/pci/drivers/"+c.Driver, dir+"/driver")
	kind, link, mac := "1", "Ethernet", fmt.Sprintf("b8:ce:f6:00:00:%02x", number)
	if c.InfiniBand {
		kind, link = "32", "InfiniBand"
		mac = fmt.Sprintf("00:00:10:49:fe:80:00:00:00:00:00:00:b8:ce:f6:03:00:00:00:%02x", number)
	}
	net := dir + "/net/" + name
	for file, text := range map[string]string{"type": kind, "mtu": "1500", "address": mac, "operstate": "up", "flags": "0x1003"} {
		n.WriteFile(net+"/"+file, text)
	}
	if rdma == "" {
		return
	}
	n.WriteFile(dir+"/infiniband_verbs/uverbs"+strconv.Itoa(number)+"/ibdev", rdma)
	n.WriteFile(dir+"/infiniband/"+rdma+"/node_guid", fmt.Sprintf("b8ce:f603:0000:%04x", number))
	port := dir + "/infiniband/" + rdma + "/ports/1/"
	for file, text := range map[string]string{"state": "4: ACTIVE", "phys_state": "5: LinkUp", "link_layer": link, "lid": "0x7", "sm_lid": "0x1"} {
		n.WriteFile(port+file, text)
	}
}

// MoveToJob moves a VF to another network namespace: its directories become empty.
func (n *Tree) MoveToJob(pci string) {
	for _, class := range []string{"net", "infiniband", "infiniband_verbs"} {
		entries, _ := os.ReadDir(filepath.Join(n.DevicePath(pci), class))
		for _, e := range entries {
			require.NoError(n.t, os.RemoveAll(filepath.Join(n.DevicePath(pci), class, e.Name())))
		}
	}
}

// HasVF reports whether the card with that interface has a VF of that number.
func (n *Tree) HasVF(name string, number int) bool {
	for _, c := range n.cards {
		if c.Name == name {
			_, err := os.Lstat(fmt.Sprintf("%s/virtfn%d", n.DevicePath(c.PCI), number))
			return err == nil
		}
	}
	return false
}
