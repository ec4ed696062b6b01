// SPDX-License-Identifier: Apache-2.0

package job

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/netsetup/attach"
	"github.com/gojail/gojail/netsetup/link"
)

// Counters are the counters of a job's VF, by the names of their files in sysfs. A counter that the driver does not
// have is missing. Data that a file counts in words are here in bytes.
type Counters struct {
	Interface map[string]uint64 // class/net/NAME/statistics
	// class/infiniband/NAME/ports/N/counters, by port: "1", and "NAME/1" for the further devices of a card
	Ports map[string]map[string]uint64
}

// portWord is the unit in which a port counts its data, in bytes (IBTA specification, PortCounters).
const portWord = 4

// The counters that are read.
var (
	interfaceCounters = []string{"rx_bytes", "tx_bytes", "rx_packets", "tx_packets", "rx_dropped", "tx_dropped",
		"rx_errors", "tx_errors"}
	portCounters = []string{"port_rcv_data", "port_xmit_data", "port_rcv_packets", "port_xmit_packets",
		"port_xmit_wait"}
)

// readCounters reads the counters of a job's rails, by rail, from a sysfs of the job's network namespace.
func readCounters(namespace *os.File, rails []attach.RailNet) (map[string]Counters, error) {
	space, err := link.Open(int(namespace.Fd()))
	if err != nil {
		return nil, err
	}
	defer space.Close()
	root, err := space.MountSysfs()
	if err != nil {
		return nil, err
	}
	defer unix.Close(root)
	all := map[string]Counters{}
	var errs []error
	for i := range rails {
		c, err := readRailCounters(fmt.Sprintf("/proc/self/fd/%d", root), &rails[i])
		if err != nil {
			errs = append(errs, err)
			continue
		}
		all[rails[i].Rail] = c
	}
	return all, errors.Join(errs...)
}

// readRailCounters reads the counters of one rail. It verifies the PCI address of the VF: another device may have its
// name by now.
func readRailCounters(sys string, r *attach.RailNet) (c Counters, err error) {
	if r.Name != "" {
		dir := filepath.Join(sys, "class/net", r.Name)
		if _, err := os.Lstat(dir); err != nil {
			return c, fmt.Errorf("rail %s: the job has no interface %s", r.Rail, r.Name)
		}
		if device, err := os.Readlink(filepath.Join(dir, "device")); err == nil && filepath.Base(device) != r.PCI {
			return c, fmt.Errorf("rail %s: %s is %s, not %s", r.Rail, r.Name, filepath.Base(device), r.PCI)
		}
		c.Interface = readCounterFiles(filepath.Join(dir, "statistics"), interfaceCounters)
	}
	for i, device := range r.ListRDMA() {
		prefix := ""
		if i > 0 {
			prefix = device + "/"
		}
		c.readPorts(filepath.Join(sys, "class/infiniband", device, "ports"), prefix)
	}
	return c, nil
}

// readPorts adds the counters of an RDMA device's ports, under the port's number with the prefix.
func (c *Counters) readPorts(ports, prefix string) {
	if c.Ports == nil {
		c.Ports = map[string]map[string]uint64{}
	}
	entries, _ := os.ReadDir(ports)
	for _, e := range entries {
		counters := readCounterFiles(filepath.Join(ports, e.Name(), "counters"), portCounters)
		for name := range counters {
			if strings.HasSuffix(name, "_data") {
				counters[name] *= portWord
			}
		}
		if len(counters) > 0 {
			c.Ports[prefix+e.Name()] = counters
		}
	}
}

func readCounterFiles(dir string, names []string) map[string]uint64 {
	values := map[string]uint64{}
	for _, name := range names {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			continue
		}
		if n, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64); err == nil {
			values[name] = n
		}
	}
	return values
}
