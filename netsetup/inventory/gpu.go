// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"path/filepath"
	"strconv"
	"strings"

	"github.com/gojail/gojail/internal/nvidiaproc"
)

// PCI vendors of GPUs.
const (
	nvidia = "10de"
	amd    = "1002"
)

// GPU is a GPU. Minor, UUID and Model are known for NVIDIA's own driver only.
type GPU struct {
	Device
	Minor int    `json:"minor"`           // minor number, the N of /dev/nvidiaN; -1: unknown
	Node  string `json:"node,omitempty"`  // "/dev/nvidia0" below Roots.Dev
	Model string `json:"model,omitempty"` // "NVIDIA H100 80GB HBM3"
	UUID  string `json:"uuid,omitempty"`
}

// isGPU reports whether a PCI device is a GPU: a VGA (0x0300) or 3D (0x0302) controller of
// NVIDIA or AMD, an AMD display controller (0x0380) or accelerator (0x1200).
func isGPU(vendor, class string) bool {
	hasClass := func(classes ...string) bool {
		for _, c := range classes {
			if strings.HasPrefix(class, c) {
				return true
			}
		}
		return false
	}
	switch strings.TrimPrefix(vendor, "0x") {
	case nvidia:
		return hasClass("0x0300", "0x0302")
	case amd:
		return hasClass("0x0300", "0x0302", "0x0380", "0x1200")
	}
	return false
}

func readGPU(d directory, roots Roots) *GPU {
	g := &GPU{Device: readDevice(d), Minor: -1}
	driver := directory{filepath.Join(roots.Proc, "driver/nvidia/gpus", g.PCI), d.problems}
	about := nvidiaproc.ParseInformation(driver.readText("information"))
	g.Model, g.UUID = about.Model, about.UUID
	if about.Minor != "" {
		g.Minor = driver.parseNumber(about.Minor)
	}
	if g.Minor >= 0 {
		g.Node = filepath.Join(roots.Dev, "nvidia"+strconv.Itoa(g.Minor))
	}
	return g
}
