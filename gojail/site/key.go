// SPDX-License-Identifier: Apache-2.0

package site

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"

	"github.com/gojail/gojail/gojail/config"
	"github.com/gojail/gojail/gojail/contract"
	"github.com/gojail/gojail/gojail/node"
)

// Key returns 16 hex digits that change with everything that shapes the jail's template: its configuration, the device
// nodes, and the installed Slurm. The next job replaces a zygote that has another key.
func Key(c *config.Config, h *node.Hardware, j *config.Jail) string {
	template := *j
	template.Users, template.Groups, template.UserMounts = nil, nil, nil // decided for each step
	template.Tmp, template.TmpSize, template.ShmSize = "", 0, 0
	template.Writable, template.WriteSize = map[bool]string{true: "somewhere"}[j.Writable != ""], 0
	template.Isolation = config.Isolation{HidePID: j.Isolation.HidePID, Cgroups: j.Isolation.Cgroups}
	what := struct {
		Version int
		Jail    config.Jail
		Slurm   config.Slurm
		Scratch string
		Present []string
	}{contract.Version, template, c.Slurm, c.Scratch, nil}
	for _, d := range h.SharedDevices(j) {
		what.Present = append(what.Present, fmt.Sprintf("%s %d", d.Path, d.Rdev))
	}
	what.Present = append(what.Present, h.CDIWords(j)...)
	what.Present = append(what.Present, node.FileWords(node.FindCommand(c))...)
	if j.Slurm {
		what.Present = append(what.Present, node.SlurmWords(c)...)
	}
	text, err := json.Marshal(what)
	if err != nil {
		panic(err) // strings and numbers only
	}
	sum := sha256.Sum256(text)
	return fmt.Sprintf("%x", sum[:8])
}
