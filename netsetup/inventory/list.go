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
	VF       int      `json:"vf"` // -1: a card that has none, but could
	PCI      string   `json:"pci"`
	Netdev   string   `json:"netdev"` // "" while it is in a job
	RDMA     []string `json:"rdma"`
	NUMA     int      `json:"numa"`
	GPU      string   `json:"gpu"` // PCI address of the nearest one, "" without GPUs
	Distance string   `json:"distance"`
	Rail     string   `json:"rail"`
	Job      string   `json:"job"`
	State    string   `json:"state"`
	Reason   string   `json:"reason,omitempty"` // why it is quarantined
}

// Holders is what others know about VFs, each by PCI address.
type Holders struct {
	Rail       map[string]string // the rail that it belongs to
	Job        map[string]string // the job that holds it
	Quarantine map[string]string // why nobody gets it
}

// List is one row for each VF, card by card, and one for each card that could
// have VFs and has none. A quarantined VF is never "free".
func (inv *Inventory) List(h Holders) []Row {
	rows := []Row{}
	for _, pf := range inv.PFs {
		if pf.SRIOV && len(pf.VFs) == 0 {
			row := inv.row(pf.Device, pf.Interface, pf.RDMA)
			row.PF, row.VF, row.State = pf.String(), -1, fmt.Sprintf("none of %d VFs", pf.TotalVFs)
			rows = append(rows, row)
		}
		for _, vf := range pf.VFs {
			row := inv.row(vf.Device, vf.Interface, vf.RDMA)
			row.PF, row.VF, row.State = pf.String(), vf.Number, Free
			row.Rail, row.Job = h.Rail[vf.PCI], h.Job[vf.PCI]
			if row.Job != "" {
				row.State = stateInUse
			}
			if why, bad := h.Quarantine[vf.PCI]; bad {
				row.State, row.Reason = stateQuarantined, why
			}
			rows = append(rows, row)
		}
	}
	return rows
}

// row has what PFs and VFs have alike.
func (inv *Inventory) row(d Device, i Interface, rdma []RDMA) Row {
	row := Row{PCI: d.PCI, Netdev: i.Name(), NUMA: d.NUMA, RDMA: []string{}}
	for _, r := range rdma {
		row.RDMA = append(row.RDMA, r.Name)
	}
	if gpu, distance := inv.nearest(d); gpu != nil {
		row.GPU, row.Distance = gpu.PCI, distance.String()
	}
	return row
}

// Render writes rows as a table; "-" is what there is not.
func Render(w io.Writer, rows []Row) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "PF\tVF\tPCI\tNETDEV\tRDMA\tNUMA\tGPU\tDISTANCE\tRAIL\tJOB\tSTATE")
	for _, r := range rows {
		state := r.State
		if r.Reason != "" {
			state += ": " + r.Reason
		}
		cells := []string{r.PF, number(r.VF), r.PCI, r.Netdev, strings.Join(r.RDMA, ","), number(r.NUMA),
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

func number(n int) string {
	if n < 0 {
		return ""
	}
	return strconv.Itoa(n)
}
