// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"context"
	"errors"
	"fmt"
	"os/exec"

	"github.com/gojail/gojail/healthcheck/config"
	"github.com/gojail/gojail/internal/command"
	"github.com/gojail/gojail/internal/slurm"
)

// Slurm is the controller as queried by one node.
type Slurm struct {
	config.Slurm
	Node string
	Lock string // path of a lock file, which prevents further scontrol processes while one is stuck
}

// showNode returns the state of the node.
func (s *Slurm) showNode(ctx context.Context) (*nodeState, error) {
	record, err := slurm.ShowNode(ctx, s.newProgram(), s.Node)
	if err != nil {
		return nil, s.describe("show", err)
	}
	return readState(record, s.Node)
}

// drainNode drains the node, or replaces the reason of its drain.
func (s *Slurm) drainNode(ctx context.Context, reason string) error {
	return s.updateNode(ctx, "State=DRAIN", "Reason="+reason)
}

// undrainNode ends the node's drain and leaves its base state unchanged, unlike RESUME, which
// would also return a node that is down (scontrol(1)).
func (s *Slurm) undrainNode(ctx context.Context) error {
	return s.updateNode(ctx, "State=UNDRAIN")
}

func (s *Slurm) updateNode(ctx context.Context, values ...string) error {
	p := s.newProgram()
	p.Args = append([]string{"update", "NodeName=" + s.Node}, values...)
	_, err := slurm.Run(ctx, p)
	return s.describe("update", err)
}

// newProgram returns scontrol with the deadline of a request.
func (s *Slurm) newProgram() slurm.Program {
	return slurm.Program{Command: command.Command{Path: s.Scontrol, Lock: s.Lock}, Conf: s.Conf, Timeout: s.Timeout}
}

// describe adds to an error of scontrol what it was asked.
func (s *Slurm) describe(verb string, err error) error {
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return fmt.Errorf("cannot %s node %s: %w; see: %s ping", verb, s.Node, err, s.Scontrol)
	}
	return err
}
