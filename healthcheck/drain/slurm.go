// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"context"
	"errors"
	"fmt"
	"os/exec"

	"github.com/gojail/gojail/healthcheck/config"
	"github.com/gojail/gojail/internal/command"
	"github.com/gojail/gojail/internal/slurmconf"
)

// Slurm is the controller as queried by one node.
type Slurm struct {
	config.Slurm
	Node string
	Lock string // path of a lock file, which prevents further scontrol processes while one is stuck
}

// showNode returns the state of the node.
func (s *Slurm) showNode(ctx context.Context) (*nodeState, error) {
	text, err := s.runScontrol(ctx, "show", "node", s.Node)
	if err != nil {
		return nil, err
	}
	return parseNode(text, s.Node)
}

// drainNode drains the node, or replaces the reason of its drain.
func (s *Slurm) drainNode(ctx context.Context, reason string) error {
	_, err := s.runScontrol(ctx, "update", "NodeName="+s.Node, "State=DRAIN", "Reason="+reason)
	return err
}

// undrainNode ends the node's drain and leaves its base state unchanged, unlike RESUME, which
// would also return a node that is down (scontrol(1)).
func (s *Slurm) undrainNode(ctx context.Context) error {
	_, err := s.runScontrol(ctx, "update", "NodeName="+s.Node, "State=UNDRAIN")
	return err
}

// runScontrol runs scontrol with the deadline of a request.
func (s *Slurm) runScontrol(ctx context.Context, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, s.Timeout)
	defer cancel()
	text, err := command.Run(ctx, command.Command{Path: s.Scontrol, Args: args, Env: slurmconf.Environment(s.Conf), Lock: s.Lock})
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return "", fmt.Errorf("cannot %s node %s: %w; see: %s ping", args[0], s.Node, err, s.Scontrol)
	}
	return text, err
}
