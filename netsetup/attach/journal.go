// SPDX-License-Identifier: Apache-2.0

package attach

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/netsetup/config"
	"github.com/gojail/gojail/netsetup/link"
	"github.com/gojail/gojail/trusted"
)

// store is the state directory:
//
//	vf/0000:86:00.2.json   a VF that a job holds: what it was before, and how far its steps are
//	jobs/4711.json         a job: its control interface, and its network once that is complete
//	lock, jobs.lock        see lock.go
type store string

// entry is the journal of one VF.
type entry struct {
	Boot   string                `json:"boot"`
	Job    string                `json:"job"`
	Netns  uint64                `json:"netns"` // inode of the job's network namespace
	Phase  string                `json:"phase"` // the step that has begun
	Rail   string                `json:"rail"`
	PCI    string                `json:"pci"`
	PF     string                `json:"pf"` // PCI address
	PFName string                `json:"pf_name"`
	VF     int                   `json:"vf"`   // number
	Name   string                `json:"name"` // in the job
	Table  int                   `json:"table"`
	Link   config.LinkType       `json:"link"`
	RDMA   config.RDMAMode       `json:"rdma"`
	PKey   uint16                `json:"pkey"`
	UFM    bool                  `json:"ufm"`   // UFM decides about partitions
	Slot   int                   `json:"slot"`  // its place among the VFs of the rail
	Pools  map[string]netip.Addr `json:"pools"` // the address of each pool, not valid as long as there is none

	Original    original `json:"original"`
	Quarantined string   `json:"quarantined,omitempty"` // why nobody gets it
}

// original is what a VF was before its job.
type original struct {
	Name     string           `json:"name"`
	AltNames []string         `json:"altnames"`
	MAC      net.HardwareAddr `json:"mac"`
	MTU      int              `json:"mtu"`
	TxQueue  int              `json:"txqueue"`
	RDMA     string           `json:"rdma"`
	Knobs    link.VFKnobs     `json:"knobs"`
}

// record is the journal of one job.
type record struct {
	Boot    string   `json:"boot"`
	Job     string   `json:"job"`
	Netns   uint64   `json:"netns"`
	Control *control `json:"control,omitempty"`
	Network *Network `json:"network,omitempty"` // once all of it is there
}

// control is a job's control interface.
type control struct {
	Name      string     `json:"name"` // of the node's end
	Pool      string     `json:"pool"`
	Slot      int        `json:"slot"`
	Interface int        `json:"interface"` // index
	MTU       int        `json:"mtu"`
	Address   netip.Addr `json:"address"` // not valid as long as there is none
}

var (
	jobRule = regexp.MustCompile(`^[0-9A-Za-z_+-][0-9A-Za-z._+-]{0,63}$`)
	pciRule = regexp.MustCompile(`^[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]$`)
)

// prepare makes what is missing of the directory, and refuses one that others can write.
func (s store) prepare() error {
	if err := trusted.Parents(string(s)); err != nil {
		return err
	}
	for _, dir := range []string{"", "vf", "jobs"} {
		path := filepath.Join(string(s), dir)
		if err := os.Mkdir(path, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("cannot make the directory %s: %w; make the one above it", path, err)
		}
		var st unix.Stat_t
		if err := unix.Lstat(path, &st); err != nil {
			return fmt.Errorf("cannot look at the directory %s: %w", path, err)
		}
		if err := trusted.Check(path, &st, unix.S_IFDIR); err != nil {
			return err
		}
		if st.Mode&0o777 != 0o700 {
			if err := os.Chmod(path, 0o700); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s store) vf(pci string) string  { return filepath.Join(string(s), "vf", pci+".json") }
func (s store) job(job string) string { return filepath.Join(string(s), "jobs", job+".json") }

// write replaces a journal as a whole, and returns when the disk has it.
func write(path string, value any) error {
	text, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return err
	}
	if err := replace(path, append(text, '\n')); err != nil {
		return fmt.Errorf("cannot write the journal %s: %w; make room in its file system", path, err)
	}
	return nil
}

func replace(path string, text []byte) error {
	file, err := os.OpenFile(path+".new", os.O_WRONLY|os.O_CREATE|os.O_TRUNC|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(text)
	err = errors.Join(err, file.Sync(), file.Close())
	if err == nil {
		err = os.Rename(path+".new", path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(path+".new"))
	}
	return syncDirectory(path)
}

// erase removes a journal; one that is gone is no error.
func erase(path string) error {
	for _, p := range []string{path + ".new", path} { // the first is left by a process that was killed in replace
		if err := os.Remove(p); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("cannot erase the journal %s: %w", path, err)
		}
	}
	return syncDirectory(path)
}

// tidy removes what is left of journals that were never there. First versions are
// written with the node's lock, which the caller has.
func (s store) tidy() error {
	var errs []error
	for _, dir := range []string{"vf", "jobs"} {
		paths, err := filepath.Glob(filepath.Join(string(s), dir, "*.json.new"))
		errs = append(errs, err)
		for _, path := range paths {
			journal := strings.TrimSuffix(path, ".new")
			if _, err := os.Lstat(journal); errors.Is(err, fs.ErrNotExist) {
				errs = append(errs, erase(journal))
			}
		}
	}
	return errors.Join(errs...)
}

func syncDirectory(path string) error {
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer dir.Close()
	return dir.Sync()
}

// damaged is a journal that cannot be understood. It is never erased: it is all
// that is known about a VF that a job may have.
type damaged struct {
	path string
	err  error
}

func (d *damaged) Error() string {
	return fmt.Sprintf("the journal %s is damaged: %v; look after what it is about by hand, then remove it", d.path, d.err)
}

func (d *damaged) Unwrap() error { return d.err }

func read(path string, into any, check func() error) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		return &damaged{path, err}
	}
	if _, err := decoder.Token(); err != io.EOF {
		return &damaged{path, errors.New("text after its end")}
	}
	if err := check(); err != nil {
		return &damaged{path, err}
	}
	return nil
}

func (s store) entry(pci string) (*entry, error) {
	e := new(entry)
	err := read(s.vf(pci), e, func() error {
		switch {
		case e.PCI != pci || !pciRule.MatchString(e.PCI) || !pciRule.MatchString(e.PF):
			return fmt.Errorf("it speaks of %.30q of %.30q", e.PCI, e.PF)
		case !jobRule.MatchString(e.Job) || e.Boot == "" || e.Original.Name == "" || e.Name == "":
			return errors.New("job, boot or names are missing")
		case !slices.ContainsFunc(steps, func(s step) bool { return s.name == e.Phase }):
			return fmt.Errorf("there is no phase %.30q", e.Phase)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return e, nil
}

// record reads that of a job; nil if there is none.
func (s store) record(job string) (*record, error) {
	r := new(record)
	err := read(s.job(job), r, func() error {
		if r.Job != job || r.Boot == "" {
			return fmt.Errorf("it speaks of job %.70q", r.Job)
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

// entries reads the journals of all VFs. Those that are damaged are by PCI address
// in bad; they may be anybody's.
func (s store) entries() (all []*entry, bad map[string]string, err error) {
	names, err := s.list("vf")
	if err != nil {
		return nil, nil, err
	}
	bad = map[string]string{}
	for _, pci := range names {
		e, err := s.entry(pci)
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

// list names the journals of a directory, in order.
func (s store) list(dir string) (names []string, err error) {
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

// of is what journals say about a job.
func (s store) of(job string) (mine []*entry, err error) {
	all, _, err := s.entries()
	return slices.DeleteFunc(all, func(e *entry) bool { return e.Job != job }), err
}
