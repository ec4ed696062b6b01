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

// Key is 16 hex digits that change with anything that shapes the jail's
// template: what is configured, the device nodes there are, and which Slurm is
// installed. A zygote with another key is replaced for the next job.
func Key(c *config.Config, j *config.Jail) string {
	node.WithCDI(c)
	template := *j
	template.Users, template.Groups, template.UserMounts = nil, nil, nil // decided per step
	template.Tmp, template.TmpSize, template.ShmSize = "", 0, 0
	template.Isolation = config.Isolation{HidePID: j.Isolation.HidePID, Cgroups: j.Isolation.Cgroups}
	what := struct {
		Version int
		Jail    config.Jail
		Slurm   config.Slurm
		Scratch string
		Present []string
	}{contract.Version, template, c.Slurm, c.Scratch, nil}
	for _, d := range node.Everybodys(j, c.GPUs) {
		what.Present = append(what.Present, fmt.Sprintf("%s %d", d.Path, d.Rdev))
	}
	what.Present = append(what.Present, node.Present(j.CDIDevices)...)
	what.Present = append(what.Present, node.Identify(node.FindCommand(c))...)
	if j.Slurm {
		what.Present = append(what.Present, node.SlurmPresent(c)...)
	}
	text, err := json.Marshal(what)
	if err != nil {
		panic(err) // strings and numbers only
	}
	sum := sha256.Sum256(text)
	return fmt.Sprintf("%x", sum[:8])
}
