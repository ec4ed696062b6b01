// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"slices"
	"strings"

	"github.com/gojail/gojail/internal/metric"
)

// VF is a VF of a job.
type VF struct {
	Job    string
	Rail   string
	PCI    string
	Netdev string // name of its network interface in the job
	RDMA   string // "": none
	PF     string // name of the card
	Number string

	Interface map[string]uint64 // counters by the names of sysfs; a missing one is unknown
	// counters of each port of the RDMA device, "1", and of the card's further ones, "mlx5_1/1"; data in bytes
	Ports map[string]map[string]uint64
}

// HeldVF is a VF that is not free.
type HeldVF struct {
	PCI         string
	Rail        string // "": unknown
	Quarantined bool
}

// counterFamily is a metric for a counter of sysfs.
type counterFamily struct {
	file   string
	family metric.Family
}

// The counters of a VF's interface, and those of a port of its RDMA device.
var (
	interfaceCounters = []counterFamily{
		{"rx_bytes", newCounter("gojail_job_network_receive_bytes_total", "Bytes that the job's VF received.", "job_id",
			"rail")},
		{"tx_bytes", newCounter("gojail_job_network_transmit_bytes_total", "Bytes that the job's VF sent.", "job_id",
			"rail")},
		{"rx_packets", newCounter("gojail_job_network_receive_packets_total", "Packets that the job's VF received.",
			"job_id", "rail")},
		{"tx_packets", newCounter("gojail_job_network_transmit_packets_total", "Packets that the job's VF sent.",
			"job_id", "rail")},
		{"rx_dropped", newCounter("gojail_job_network_receive_drop_total", "Received packets that were dropped.",
			"job_id", "rail")},
		{"tx_dropped", newCounter("gojail_job_network_transmit_drop_total",
			"Packets that were dropped instead of sent.", "job_id", "rail")},
		{"rx_errors", newCounter("gojail_job_network_receive_errs_total", "Errors in receiving.", "job_id", "rail")},
		{"tx_errors", newCounter("gojail_job_network_transmit_errs_total", "Errors in sending.", "job_id", "rail")},
	}
	portCounters = []counterFamily{
		{"port_rcv_data", newCounter("gojail_job_rdma_port_data_received_bytes_total",
			"Bytes that the port of the job's RDMA device received.", "job_id", "rail", "device", "port")},
		{"port_xmit_data", newCounter("gojail_job_rdma_port_data_transmitted_bytes_total",
			"Bytes that the port of the job's RDMA device sent.", "job_id", "rail", "device", "port")},
		{"port_rcv_packets", newCounter("gojail_job_rdma_port_packets_received_total",
			"Packets that the port of the job's RDMA device received.", "job_id", "rail", "device", "port")},
		{"port_xmit_packets", newCounter("gojail_job_rdma_port_packets_transmitted_total",
			"Packets that the port of the job's RDMA device sent.", "job_id", "rail", "device", "port")},
		{"port_xmit_wait", newCounter("gojail_job_rdma_port_transmit_wait_total",
			"Ticks in which the port had data to send and sent none.", "job_id", "rail", "device", "port")},
	}
)

// addVF sends the metrics of a job's VF.
func (s sink) addVF(f *Facts, v *VF) {
	user := ""
	if i := slices.IndexFunc(f.jobs, func(j job) bool { return j.id == v.Job }); i >= 0 {
		user = f.jobs[i].user
	}
	s.add(jobVF, 1, v.Job, user, v.Rail, v.PCI, v.Netdev, v.RDMA, v.PF, v.Number)
	for _, c := range interfaceCounters {
		if n, known := v.Interface[c.file]; known {
			s.add(c.family, float64(n), v.Job, v.Rail)
		}
	}
	for name, counters := range v.Ports {
		device, port, further := strings.Cut(name, "/") // of a card with several devices
		if !further {
			device, port = v.RDMA, name
		}
		for _, c := range portCounters {
			if n, known := counters[c.file]; known {
				s.add(c.family, float64(n), v.Job, v.Rail, device, port)
			}
		}
	}
}

// The states of VFs that are not free.
const (
	vfInUse       = "in_use"
	vfQuarantined = "quarantined"
)

// addHeldVFs sends the numbers of VFs that are not free, and a series for each VF in quarantine.
func (s sink) addHeldVFs(vfs []HeldVF) {
	type kind struct{ rail, state string }
	count := map[kind]int{}
	for _, v := range vfs {
		count[kind{v.Rail, vfInUse}] += 0
		count[kind{v.Rail, vfQuarantined}] += 0
		state := vfInUse
		if v.Quarantined {
			state = vfQuarantined
			s.add(vfInQuarantine, 1, v.Rail, v.PCI)
		}
		count[kind{v.Rail, state}]++
	}
	for k, n := range count {
		s.add(vfCount, float64(n), k.rail, k.state)
	}
}
