// SPDX-License-Identifier: Apache-2.0

package attach

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// Held tells who has VFs, by PCI address: jobs, and why nobody gets those in
// quarantine. A VF with a damaged journal is in quarantine. state is Site.State.
func Held(state string) (jobs, quarantined map[string]string, err error) {
	entries, bad, err := store(state).entries()
	if err != nil {
		return nil, nil, err
	}
	jobs = map[string]string{}
	for _, e := range entries {
		if e.Quarantined != "" {
			bad[e.PCI] = fmt.Sprintf("after job %s: %s", e.Job, e.Quarantined)
		} else {
			jobs[e.PCI] = e.Job
		}
	}
	return jobs, bad, nil
}

// Lift ends the quarantine of a VF that a person has looked after: its journal is
// erased, and what that knew is forgotten.
func Lift(state, pci string) error {
	s := store(state)
	if !pciRule.MatchString(pci) {
		return fmt.Errorf("%.30q is no PCI address such as 0000:86:00.2", pci)
	}
	lock, err := s.lockNode(context.Background())
	if err != nil {
		return err
	}
	defer lock.Close()
	e, err := s.entry(pci)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("VF %s is not in quarantine", pci)
	case err == nil && e.Quarantined == "":
		return fmt.Errorf("VF %s is not in quarantine: job %s has it; if that is gone, run: gojail sweep", pci, e.Job)
	}
	return erase(s.vf(pci))
}

// Show is what a job has; an error that is fs.ErrNotExist if that is nothing, or
// not complete. state is Site.State.
func Show(state, job string) (*Network, error) {
	if !isJob(job) {
		return nil, fmt.Errorf("%.70q is no job", job)
	}
	r, err := store(state).record(job)
	if err != nil {
		return nil, err
	}
	if r == nil || r.Network == nil {
		return nil, &os.PathError{Op: "read the network of", Path: "job " + job, Err: fs.ErrNotExist}
	}
	return r.Network, nil
}
