// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
)

// The states of a VF.
const (
	Free             = "free"
	stateInUse       = "in use"
	stateQuarantined = "quarantined"
)

// Row is one line of `gojail vf ls`.
type Row struct {
	PF       string   `json:"pf"`
	VF       int      `json:"vf"` // -1: a card that has no VFs, but can have some, or that is given whole
	PCI      string   `json:"pci"`
	Netdev   string   `json:"netdev"` // "" while the VF is in a job
	RDMA     []string `json:"rdma"`
	NUMA     int      `json:"numa"`
	GPU      string   `json:"gpu"` // PCI address of the nearest GPU, "" if there are no GPUs
	Distance string   `json:"distance"`
	Rail     string   `json:"rail"`
	Job      string   `json:"job"`
	State    string   `json:"state"`
	Reason   string   `json:"reason,omitempty"` // reason of the quarantine
}

// Holders are the owners of VFs, each by the VF's PCI address.
type Holders struct {
	Rail       map[string]string // rail that the VF belongs to
	Job        map[string]string // job that holds the VF
	Quarantine map[string]string // reason of the quarantine, during which no job gets the VF
}

// ListVFs returns one row for each function that jobs get, card by card, and one for each card that can have VFs
// and has none. A quarantined VF is never "free".
func (inv *Inventory) ListVFs(h Holders) []Row {
	rows := []Row{}
	for _, pf := range inv.PFs {
		switch {
		case h.has(pf.PCI):
			rows = append(rows, inv.buildFunctionRow(pf.AsFunction(), h))
		case pf.SRIOV && len(pf.VFs) == 0:
			row := inv.buildRow(pf.Device, pf.Interface, pf.RDMA)
			row.PF, row.VF, row.State = pf.String(), -1, fmt.Sprintf("none of %d VFs", pf.TotalVFs)
			rows = append(rows, row)
		}
		for _, vf := range pf.VFs {
			rows = append(rows, inv.buildFunctionRow(vf, h))
		}
	}
	return rows
}

// has reports whether a rail, a job or the quarantine has a function.
func (h Holders) has(pci string) bool {
	_, quarantined := h.Quarantine[pci]
	return quarantined || h.Rail[pci] != "" || h.Job[pci] != ""
}

// buildFunctionRow returns the row of a VF, or of a card that is given whole.
func (inv *Inventory) buildFunctionRow(vf *VF, h Holders) Row {
	row := inv.buildRow(vf.Device, vf.Interface, vf.RDMA)
	row.PF, row.VF, row.State = vf.PF.String(), vf.Number, Free
	row.Rail, row.Job = h.Rail[vf.PCI], h.Job[vf.PCI]
	if row.Job != "" {
		row.State = stateInUse
	}
	if why, quarantined := h.Quarantine[vf.PCI]; quarantined {
		row.State, row.Reason = stateQuarantined, why
	}
	return row
}

// buildRow returns the columns that PFs and VFs have in common.
func (inv *Inventory) buildRow(d Device, i Interface, rdma []RDMA) Row {
	row := Row{PCI: d.PCI, Netdev: i.Name(), NUMA: d.NUMA, RDMA: []string{}}
	for _, r := range rdma {
		row.RDMA = append(row.RDMA, r.Name)
	}
	if gpu, distance := inv.findNearestGPU(d); gpu != nil {
		row.GPU, row.Distance = gpu.PCI, distance.String()
	}
	return row
}

// Render writes rows as a table; "-" stands for an empty cell.
func Render(w io.Writer, rows []Row) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "PF\tVF\tPCI\tNETDEV\tRDMA\tNUMA\tGPU\tDISTANCE\tRAIL\tJOB\tSTATE")
	for _, r := range rows {
		state := r.State
		if r.Reason != "" {
			state += ": " + r.Reason
		}
		cells := []string{r.PF, formatNumber(r.VF), r.PCI, r.Netdev, strings.Join(r.RDMA, ","), formatNumber(r.NUMA),
			r.GPU, r.Distance, r.Rail, r.Job, state}
		for i, cell := range cells {
			if cell == "" {
				cells[i] = "-"
			}
		}
		fmt.Fprintln(table, strings.Join(cells, "\t"))
	}
	return table.Flush()
}

func formatNumber(n int) string {
	if n < 0 {
		return ""
	}
	return strconv.Itoa(n)
}
