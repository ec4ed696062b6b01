// SPDX-License-Identifier: Apache-2.0

package attach

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/gojail/gojail/internal/pciaddress"
	"github.com/gojail/gojail/netsetup/config"
	"github.com/gojail/gojail/netsetup/link"
)

// entry is the journal of one VF: all that an undo needs, also in another process and after network.toml has changed.
type entry struct {
	Boot   string          `json:"boot"`
	Job    string          `json:"job"`
	Netns  uint64          `json:"netns"` // inode number of the job's network namespace
	Phase  string          `json:"phase"` // name of the last step that has begun
	Rail   string          `json:"rail"`
	PCI    string          `json:"pci"`
	PF     string          `json:"pf"` // PCI address
	PFName string          `json:"pf_name"`
	VF     int             `json:"vf"`   // number; -1: the card is given whole, and PF is PCI
	Name   string          `json:"name"` // name in the job
	Table  int             `json:"table"`
	Link   config.LinkType `json:"link"`
	RDMA   config.RDMAMode `json:"rdma"`
	PKey   uint16          `json:"pkey"`
	UFM    bool            `json:"ufm"`  // whether UFM manages the partition
	Slot   int             `json:"slot"` // index of the VF among the rail's VFs
	// whether the function has RDMA devices and no network interface
	RDMAOnly bool                  `json:"rdma_only,omitempty"`
	Pools    map[string]netip.Addr `json:"pools"` // address from each pool; invalid until one is leased

	Original    original `json:"original"`
	Quarantined string   `json:"quarantined,omitempty"` // reason of the quarantine; "": none
}

// original is the state of a VF before its job.
type original struct {
	Name     string           `json:"name"`
	AltNames []string         `json:"altnames"`
	MAC      net.HardwareAddr `json:"mac"`
	MTU      int              `json:"mtu"`
	TxQueue  int              `json:"txqueue"`
	RDMA     string           `json:"rdma"`
	RDMAMore []string         `json:"rdma_more,omitempty"` // further RDMA devices
	Knobs    link.VFKnobs     `json:"knobs"`
	Settings *link.Settings   `json:"settings,omitempty"` // of a whole card
}

// record is the journal of one job.
type record struct {
	Boot    string   `json:"boot"`
	Job     string   `json:"job"`
	Netns   uint64   `json:"netns"`
	Label   string   `json:"label"`
	Control *control `json:"control,omitempty"`
	Network *Network `json:"network,omitempty"` // set when the network is complete
}

// control is a job's control interface.
type control struct {
	Name      string     `json:"name"` // name of the node's end
	Pool      string     `json:"pool"`
	Slot      int        `json:"slot"`
	Interface int        `json:"interface"` // index
	MTU       int        `json:"mtu"`
	Address   netip.Addr `json:"address"` // invalid until one is leased
}

// jobRule keeps "/", and a dot at the beginning, out of the names of files.
var jobRule = regexp.MustCompile(`^[0-9A-Za-z_+-][0-9A-Za-z._+-]*$`)

// isJobName reports whether text can be the number of a job, and thus a part of a file's name.
func isJobName(text string) bool { return len(text) <= 64 && jobRule.MatchString(text) }

// readEntry reads the journal of a VF. It checks all values on which an undo relies: a link that is renamed, or a file
// that is removed, must be this VF's, and the phase must be that of a step.
func (s store) readEntry(pci string) (*entry, error) {
	e := new(entry)
	err := readJournal(s.vfPath(pci), e, func() error {
		switch {
		case e.PCI != pci || !pciaddress.IsValid(e.PCI) || !pciaddress.IsValid(e.PF):
			return fmt.Errorf("it names VF %.30q of PF %.30q", e.PCI, e.PF)
		case !isJobName(e.Job) || e.Boot == "" || e.Original.Name == "" && !e.RDMAOnly || e.Name == "":
			return errors.New("job, boot or names are missing")
		case !slices.ContainsFunc(steps, func(s step) bool { return s.name == e.Phase }):
			return fmt.Errorf("unknown phase %.30q", e.Phase)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return e, nil
}

// readRecord reads the journal of a job. It returns nil without an error if the job has none.
func (s store) readRecord(job string) (*record, error) {
	r := new(record)
	err := readJournal(s.jobPath(job), r, func() error {
		if r.Job != job || r.Boot == "" {
			return fmt.Errorf("it names job %.70q", r.Job)
		}
		return nil
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return r, nil
}

// readEntries reads the journals of all VFs. bad are the reasons why journals are damaged, by the PCI address of the
// VF; such a journal may belong to any job.
func (s store) readEntries() (all []*entry, bad map[string]string, err error) {
	names, err := s.listJournals("vf")
	if err != nil {
		return nil, nil, err
	}
	bad = map[string]string{}
	for _, pci := range names {
		e, err := s.readEntry(pci)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			bad[pci] = err.Error()
		default:
			all = append(all, e)
		}
	}
	return all, bad, nil
}

// listJournals returns the names of the journals in a directory, in order.
func (s store) listJournals(dir string) (names []string, err error) {
	files, err := os.ReadDir(filepath.Join(string(s), dir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot list the journals: %w", err)
	}
	for _, f := range files {
		if name, ok := strings.CutSuffix(f.Name(), ".json"); ok {
			names = append(names, name)
		}
	}
	return names, nil
}

// isEmpty reports whether no job holds anything. It returns false if the journals cannot be listed.
func (s store) isEmpty() bool {
	jobs, err := s.listJournals("jobs")
	vfs, vfsErr := s.listJournals("vf")
	return err == nil && vfsErr == nil && len(jobs)+len(vfs) == 0
}

// readEntriesOf returns the journals of a job's VFs.
func (s store) readEntriesOf(job string) (entries []*entry, err error) {
	all, _, err := s.readEntries()
	return slices.DeleteFunc(all, func(e *entry) bool { return e.Job != job }), err
}
