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
func (t *Tree) AddCard(c Card) {
	t.t.Helper()
	if c.Driver == "" {
		c.Driver = "mlx5_core"
	}
	files := map[string]string{"device": "0x1017"}
	if c.TotalVFs > 0 {
		maps.Copy(files, map[string]string{"sriov_totalvfs": strconv.Itoa(c.TotalVFs), "sriov_numvfs": "0",
			"sriov_drivers_autoprobe": "1"})
	}
	t.cards[c.PCI] = c
	t.makeFunction(c, c.PCI, files)
	t.bindDriver(c, c.PCI, c.Name, c.RDMA, 0)
	for i := range c.NumVFs {
		t.addVF(c, i)
		t.bindVF(c, i)
	}
	if c.NumVFs > 0 {
		t.WriteFile(t.DevicePath(c.PCI)+"/sriov_numvfs", strconv.Itoa(c.NumVFs))
	}
}

func (t *Tree) makeFunction(c Card, pci string, files map[string]string) {
	all := map[string]string{"vendor": "0x15b3", "class": "0x020000",
		"numa_node": strconv.Itoa(c.NUMA), "local_cpulist": c.CPUs}
	maps.Copy(all, files)
	t.makeDevice(pci, c.Under, all)
}

// VFAddress returns the PCI address of a card's VF.
func (c Card) VFAddress(i int) string {
	function := int(c.PCI[len(c.PCI)-1] - '0')
	return fmt.Sprintf("%s%02x.%x", c.PCI[:len(c.PCI)-4], 1+8*function+i/8, i%8)
}

func (t *Tree) addVF(c Card, i int) {
	t.makeFunction(c, c.VFAddress(i), map[string]string{"device": "0x1018"})
	t.makeLink(t.DevicePath(c.VFAddress(i)), fmt.Sprintf("%s/virtfn%d", t.DevicePath(c.PCI), i))
	t.makeLink(t.DevicePath(c.PCI), t.DevicePath(c.VFAddress(i))+"/physfn")
}

func (t *Tree) removeVFs(c Card) {
	links, _ := filepath.Glob(t.DevicePath(c.PCI) + "/virtfn*")
	for _, link := range links {
		target, err := os.Readlink(link)
		require.NoError(t.t, err)
		require.NoError(t.t, os.Remove(link))
		t.RemoveDevice(filepath.Base(target))
	}
}

func (t *Tree) bindVF(c Card, i int) {
	rdma := ""
	if c.RDMA != "" {
		rdma = fmt.Sprintf("%sv%d", c.RDMA, i)
	}
	t.bindDriver(c, c.VFAddress(i), fmt.Sprintf("%sv%d", c.Name, i), rdma, i+1)
}

// bindDriver gives a function its driver, and with it an interface and an RDMA device.
func (t *Tree) bindDriver(c Card, pci, name, rdma string, number int) {
	dir := t.DevicePath(pci)
	t.WriteFile(t.Sys+"/bus/pci/drivers/"+c.Driver+"/unbind", "")
	t.makeLink(t.Sys+"/bus/pci/drivers/"+c.Driver, dir+"/driver")
	kind, link, mac := "1", "Ethernet", fmt.Sprintf("b8:ce:f6:00:00:%02x", number)
	if c.InfiniBand {
		kind, link = "32", "InfiniBand"
		mac = fmt.Sprintf("00:00:10:49:fe:80:00:00:00:00:00:00:b8:ce:f6:03:00:00:00:%02x", number)
	}
	net := dir + "/net/" + name
	for file, text := range map[string]string{"type": kind, "mtu": "1500", "address": mac, "operstate": "up",
		"flags": "0x1003"} {
		t.WriteFile(net+"/"+file, text)
	}
	if rdma == "" {
		return
	}
	t.WriteFile(dir+"/infiniband_verbs/uverbs"+strconv.Itoa(number)+"/ibdev", rdma)
	t.WriteFile(dir+"/infiniband/"+rdma+"/node_guid", fmt.Sprintf("b8ce:f603:0000:%04x", number))
	port := dir + "/infiniband/" + rdma + "/ports/1/"
	for file, text := range map[string]string{"state": "4: ACTIVE", "phys_state": "5: LinkUp", "link_layer": link,
		"lid": "0x7", "sm_lid": "0x1"} {
		t.WriteFile(port+file, text)
	}
}

// MoveToJob moves a VF to another network namespace: its directories become empty.
func (t *Tree) MoveToJob(pci string) {
	for _, class := range []string{"net", "infiniband", "infiniband_verbs"} {
		entries, _ := os.ReadDir(filepath.Join(t.DevicePath(pci), class))
		for _, e := range entries {
			require.NoError(t.t, os.RemoveAll(filepath.Join(t.DevicePath(pci), class, e.Name())))
		}
	}
}

// HasVF reports whether the card with that interface has a VF of that number.
func (t *Tree) HasVF(name string, number int) bool {
	for _, c := range t.cards {
		if c.Name == name {
			_, err := os.Lstat(fmt.Sprintf("%s/virtfn%d", t.DevicePath(c.PCI), number))
			return err == nil
		}
	}
	return false
}
