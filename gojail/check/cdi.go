// SPDX-License-Identifier: Apache-2.0

package check

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/gojail/gojail/gojail/config"
	"github.com/gojail/gojail/gojail/contract"
	"github.com/gojail/gojail/gojail/node"
	"github.com/gojail/gojail/gojail/site"
)

// checkCDI reports what the CDI devices of a jail provide, devices whose kind is absent, and files of
// another driver than the loaded one. node.ReadHost fails if devices cannot be provided.
func (c *checker) checkCDI(j *config.Jail) {
	devices := c.hardware.FindCDI(j.Name)
	if devices == nil {
		return
	}
	subject := "jail " + j.Name
	for _, name := range devices.Absent {
		c.warn(subject, "if the node has such devices, create their CDI file, for example: nvidia-ctk cdi generate "+
			"--output=/etc/cdi/nvidia.yaml",
			"no CDI file of this node describes %s: jobs here run without it", name)
	}
	edits := devices.Edits
	if len(devices.Absent) < len(j.CDI) {
		text := fmt.Sprintf("CDI provides %s: %d device nodes, %d files in %s", strings.Join(j.CDI, ", "),
			len(edits.Devices), len(edits.Mounts), contract.CDIDir)
		if n := len(edits.Unhandled); n > 0 {
			text += fmt.Sprintf("; %d of its settings are omitted, such as the %s", n, edits.Unhandled[0])
		}
		c.ok(subject, "%s", text)
	}
	loaded, err := os.ReadFile(filepath.Join(node.NvidiaDriver, "version"))
	version := strings.TrimSpace(string(loaded))
	for _, m := range edits.Mounts {
		of, is := strings.CutPrefix(filepath.Base(m.Destination), "libcuda.so.")
		if is && err == nil && strings.Contains(of, ".") && of != version {
			c.fail(subject, "run: nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml, then: gojail reload "+j.Name,
				"the CDI file provides libraries of NVIDIA's driver %s, but %s is loaded: CUDA does not start", of,
				version)
		}
	}
}

// checkStaleTemplate reports a jail whose key differs from the key in the site file.
func (c *checker) checkStaleTemplate(j *config.Jail) {
	text, err := os.ReadFile(filepath.Join(c.node.State, contract.SiteFile))
	if err != nil || !strings.Contains(string(text), "\nconfig "+c.config.Identity.String()+"\n") {
		return // the next step compiles the site file
	}
	_, key, found := strings.Cut(string(text), "\njail "+j.Name+"\nkey ")
	if found && !strings.HasPrefix(key, site.Key(c.config, c.hardware, j)+"\n") {
		c.warn("jail "+j.Name, "to apply this to the next jobs: gojail reload "+j.Name,
			"devices, CDI files or Slurm's programs of this node have changed since the last job")
	}
}
