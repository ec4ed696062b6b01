// SPDX-License-Identifier: Apache-2.0

package job

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/gojail/gojail/internal/statefile"
	"github.com/gojail/gojail/netsetup/attach"
)

// note has the counters of a VF when it was attached. They count from the time when the driver was bound, not from the
// start of the job. A note of an earlier version of gojail has only the bytes, which earlier versions still read.
type note struct {
	traffic
	Counters
}

// noteCounters writes the counters of the job's VFs, by PCI address, to a file. VFs that the file already has keep
// their values, because the job's network was attached before.
func noteCounters(path string, namespace *os.File, rails []attach.RailNet) error {
	noted, err := readNotes(path)
	if err != nil {
		return err
	}
	counters, err := readCounters(namespace, rails)
	for i := range rails {
		if _, ok := noted[rails[i].PCI]; !ok {
			if c, known := counters[rails[i].Rail]; known {
				noted[rails[i].PCI] = note{c.traffic(), c}
			}
		}
	}
	return errors.Join(err, statefile.Write(path, noted))
}

// readNotes returns the notes that noteCounters wrote; a missing file has none.
func readNotes(path string) (map[string]note, error) {
	noted := map[string]note{}
	err := statefile.Read(path, &noted, func() error { return nil })
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return noted, nil
}

// ReadCounters returns how much the counters of a job's rails have increased since noteCounters wrote the file, by
// rail. A rail without a note is missing: its counters would include the bytes of earlier jobs.
func ReadCounters(path string, namespace *os.File, rails []attach.RailNet) (map[string]Counters, error) {
	noted, err := readNotes(path)
	if err != nil {
		return nil, err
	}
	now, err := readCounters(namespace, rails)
	errs := []error{err}
	own := map[string]Counters{}
	for i := range rails {
		c, known := now[rails[i].Rail]
		begin, isNoted := noted[rails[i].PCI]
		switch {
		case known && isNoted:
			own[rails[i].Rail] = c.since(begin.Counters)
		case known:
			errs = append(errs, fmt.Errorf("rail %s: the counters of %s at the start of the job are unknown",
				rails[i].Rail, rails[i].PCI))
		}
	}
	return own, errors.Join(errs...)
}

// since returns the increase of each counter that is in both.
func (c Counters) since(begin Counters) Counters {
	own := Counters{Interface: countSince(c.Interface, begin.Interface)}
	for port, counters := range c.Ports {
		if increases := countSince(counters, begin.Ports[port]); len(increases) > 0 {
			if own.Ports == nil {
				own.Ports = map[string]map[string]uint64{}
			}
			own.Ports[port] = increases
		}
	}
	return own
}

func countSince(now, begin map[string]uint64) map[string]uint64 {
	own := map[string]uint64{}
	for name, value := range now {
		if first, known := begin[name]; known {
			own[name] = since(value, first)
		}
	}
	return own
}
