// SPDX-License-Identifier: Apache-2.0

package provision

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/gojail/gojail/internal/wholefile"
	"github.com/gojail/gojail/netsetup/config"
	"github.com/gojail/gojail/netsetup/link"
)

// optionsFile is the file that gojail writes in the directory of modprobe's configuration.
const optionsFile = "gojail-rdma.conf"

var (
	netnsOption  = regexp.MustCompile(`^options\s+ib_core\s(?:.*\s)?netns_mode=(\S+)`)
	netnsCmdline = regexp.MustCompile(`(?:^|\s)ib_core\.netns_mode=(\S+)`)
)

// planLiveRDMAMode returns the setting of the current RDMA mode. The kernel changes it only while no other network
// namespace exists. On most nodes that is so only before their services start.
func planLiveRDMAMode(mode config.RDMAMode, held Held) setting {
	return setting{
		what: "RDMA namespaces", wanted: string(mode), stays: true,
		allowed: func(*Kernel) error {
			for _, vfs := range []map[string]string{held.Jobs, held.Quarantined} {
				for pci := range vfs {
					state, remedy := held.explain(pci)
					return fmt.Errorf("VF %s %s; %s", pci, state, remedy)
				}
			}
			return nil
		},
		get: func(k *Kernel) (string, error) { return readLiveRDMAMode(k.Sys) },
		set: func(k *Kernel, to string) error {
			err := k.SetRDMAMode(to)
			if errors.Is(err, link.ErrRDMABusy) {
				return fmt.Errorf("%w; the option is in %s now: update the initramfs if ib_core is in it, and reboot",
					link.ErrRDMABusy, filepath.Join(k.Modprobe, optionsFile))
			}
			return err
		},
	}
}

// planNextRDMAMode returns the setting of the RDMA mode after the next boot. It stays in
// place if the current mode cannot be changed.
func planNextRDMAMode(mode config.RDMAMode) setting {
	return setting{
		what: "RDMA namespaces at boot", wanted: string(mode), stays: true,
		get: func(k *Kernel) (string, error) {
			found, _, err := readNextRDMAMode(k.Proc, k.Modprobe)
			return found, err
		},
		set: func(k *Kernel, to string) error {
			path := filepath.Join(k.Modprobe, optionsFile)
			value := map[string]string{"exclusive": "0", "shared": "1"}[to]
			text := "# by gojail vf apply, for the policies of network.toml\noptions ib_core netns_mode=" + value + "\n"
			if err := wholefile.Save(path, []byte(text), 0o644); err != nil {
				return err
			}
			if found, where, err := readNextRDMAMode(k.Proc, k.Modprobe); err != nil || found != to {
				return errors.Join(err, fmt.Errorf("%s overrides %s: remove its netns_mode of ib_core", where, path))
			}
			return nil
		},
	}
}

// readLiveRDMAMode returns the current mode of ib_core (drivers/infiniband/core/device.c,
// netns_mode).
func readLiveRDMAMode(sys string) (string, error) {
	text, err := os.ReadFile(filepath.Join(sys, "module/ib_core/parameters/netns_mode"))
	if err != nil {
		return "", errors.New("the kernel has no RDMA, or none with namespaces (Linux 5.3): modprobe ib_core")
	}
	return parseMode(string(text)), nil
}

// readNextRDMAMode returns the mode in which ib_core will start and where it is set: on the
// kernel's command line, in the last of modprobe's files, or by default.
func readNextRDMAMode(proc, modprobe string) (mode, where string, err error) {
	cmdline, _ := os.ReadFile(filepath.Join(proc, "cmdline"))
	if m := netnsCmdline.FindStringSubmatch(string(cmdline)); m != nil {
		return parseMode(m[1]), "the kernel's command line", nil
	}
	mode, where = "shared", "the kernel's default"
	files, err := filepath.Glob(filepath.Join(modprobe, "*.conf"))
	slices.Sort(files)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return "", file, err
		}
		for line := range strings.Lines(string(text)) {
			if m := netnsOption.FindStringSubmatch(strings.TrimSpace(line)); m != nil {
				mode, where = parseMode(m[1]), file
			}
		}
	}
	return mode, where, err
}

// parseMode converts a boolean of the kernel: true stands for shared.
func parseMode(text string) string {
	switch strings.ToLower(strings.TrimSpace(text)) {
	case "0", "n", "no", "off":
		return "exclusive"
	}
	return "shared"
}
