// SPDX-License-Identifier: Apache-2.0

package jail

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/gojail/check"
	"github.com/gojail/gojail/gojail/cli/inside"
	"github.com/gojail/gojail/internal/oneline"
)

// editedJail is the name of the jail in the configuration of an edit.
const editedJail = "edit"

// editConfig is gojail.toml for the sandbox of an edit.
const editConfig = `default    = "none"
allow_none = true
scratch    = %s
[slurm]
conf  = %s
spool = %s
munge = %s
[jail.` + editedJail + `]
root  = %s
slurm = false
identity = false
tmp   = "tmpfs"
namespaces = ["pid", "ipc", "uts"]
abstract_sockets = %s
`

// findEditor returns how the command of an edit in a tree runs, and the value of abstract_sockets for it.
func findEditor(root string) (who *inside.Runner, sockets string, err error) {
	at, err := unix.Open(root, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, "", fmt.Errorf("cannot open %s: %w", root, err)
	}
	defer unix.Close(at)
	who, sockets = inside.PlanEditor(check.ProbeMap(at) == nil, check.ProbeScope() == nil)
	return who, sockets, nil
}

// runIn runs a command in a sandbox whose root is a tree, with a configuration and a state directory of its own.
func (j *jailCommand) runIn(root string, command []string) (err error) {
	c, err := j.LoadConfig()
	if err != nil {
		return err
	}
	who, sockets, err := findEditor(root)
	if err != nil {
		return err
	}
	dir, err := makeEditDirectory()
	if err != nil {
		return err
	}
	defer func() { err = oneline.Both(err, dir.remove()) }()
	own := *j.Node
	own.Config, own.State = filepath.Join(dir.path, "gojail.toml"), dir.statePath()
	var quoted []any
	for _, path := range []string{filepath.Join(dir.path, "scratch"), c.Slurm.Conf, c.Slurm.Spool, c.Slurm.Munge, root,
		sockets} {
		quoted = append(quoted, strconv.Quote(path))
	}
	if err := os.WriteFile(own.Config, fmt.Appendf(nil, editConfig, quoted...), 0o644); err != nil {
		return fmt.Errorf("cannot write the configuration of the sandbox: %w", oneline.Cause(err))
	}
	edited, jail, err := own.LoadJail(editedJail)
	if err != nil {
		return err
	}
	if _, err := makeTargetsIn(edited, jail, own.State); err != nil {
		return err
	}
	return inside.RunInNewSandbox(&own, editedJail, who, "", command)
}
