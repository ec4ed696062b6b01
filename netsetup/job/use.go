// SPDX-License-Identifier: Apache-2.0

package job

import (
	"fmt"
	"os"

	"github.com/gojail/gojail/netsetup/attach"
)

// traffic is the amount of data that a job's rails carried, in bytes.
type traffic struct {
	Received, Sent         uint64 // through the interfaces
	RDMAReceived, RDMASent uint64 // through the RDMA devices, which the interfaces do not count
	HasRDMA                bool
}

// String returns the traffic as fields of the journal's line about the end of a job.
func (t traffic) String() string {
	text := fmt.Sprintf("network_received=%d network_sent=%d", t.Received, t.Sent)
	if t.HasRDMA {
		text += fmt.Sprintf(" rdma_received=%d rdma_sent=%d", t.RDMAReceived, t.RDMASent)
	}
	return text
}

// DescribeUse returns the traffic of the job's rails since noteCounters wrote the file, as fields of the journal's line
// about the end of a job. It returns an error unless it knows the traffic of all of them.
func DescribeUse(state, job, path string, namespace *os.File) (string, error) {
	sum, err := readUse(state, job, path, namespace)
	return sum.String(), err
}

func readUse(state, job, path string, namespace *os.File) (sum traffic, err error) {
	network, err := attach.ReadNetwork(attach.StateDir(state), job)
	if err != nil {
		return sum, err
	}
	noted, err := readNotes(path)
	if err != nil {
		return sum, err
	}
	counters, err := readCounters(namespace, network.Rails)
	if err != nil {
		return sum, err
	}
	for i := range network.Rails {
		begin, known := noted[network.Rails[i].PCI]
		if !known {
			return sum, fmt.Errorf("the counters of %s at the start of job %s are unknown", network.Rails[i].PCI, job)
		}
		sum.add(counters[network.Rails[i].Rail].traffic(), begin.traffic)
	}
	return sum, nil
}

// traffic returns the traffic that the counters show.
func (c Counters) traffic() traffic {
	u := traffic{Received: c.Interface["rx_bytes"], Sent: c.Interface["tx_bytes"], HasRDMA: len(c.Ports) > 0}
	for _, port := range c.Ports {
		u.RDMAReceived += port["port_rcv_data"]
		u.RDMASent += port["port_xmit_data"]
	}
	return u
}

// add adds the traffic of a VF between two moments.
func (t *traffic) add(now, begin traffic) {
	t.Received += since(now.Received, begin.Received)
	t.Sent += since(now.Sent, begin.Sent)
	t.RDMAReceived += since(now.RDMAReceived, begin.RDMAReceived)
	t.RDMASent += since(now.RDMASent, begin.RDMASent)
	t.HasRDMA = t.HasRDMA || now.HasRDMA
}

// since returns the increase of a counter. A counter that is lower than before began again, because the driver was
// bound again.
func since(now, begin uint64) uint64 {
	if now < begin {
		return now
	}
	return now - begin
}
