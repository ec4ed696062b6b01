// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"context"
	"errors"
	"fmt"
	"os/exec"

	"github.com/gojail/gojail/healthcheck/config"
	"github.com/gojail/gojail/healthcheck/run"
)

// Slurm is the controller, as one node asks it.
type Slurm struct {
	config.Slurm
	Node string
	Lock string // a lock file: one scontrol that is stuck is enough
}

// showNode asks for the node.
func (s *Slurm) showNode(ctx context.Context) (*nodeState, error) {
	text, err := s.scontrol(ctx, "show", "node", s.Node)
	if err != nil {
		return nil, err
	}
	return parseNode(string(text), s.Node)
}

// drainNode drains the node, or gives its drain another reason.
func (s *Slurm) drainNode(ctx context.Context, reason string) error {
	_, err := s.scontrol(ctx, "update", "NodeName="+s.Node, "State=DRAIN", "Reason="+reason)
	return err
}

// undrainNode ends the node's drain and leaves its base state alone, unlike RESUME,
// which would also bring back a node that is down (scontrol(1)).
func (s *Slurm) undrainNode(ctx context.Context) error {
	_, err := s.scontrol(ctx, "update", "NodeName="+s.Node, "State=UNDRAIN")
	return err
}

func (s *Slurm) scontrol(ctx context.Context, args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, s.Timeout)
	defer cancel()
	var env []string
	if s.Conf != "" {
		env = append(env, "SLURM_CONF="+s.Conf)
	}
	text, err := run.Command(ctx, s.Lock, env, s.Scontrol, args...)
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return nil, fmt.Errorf("%s %s %s: %w; see: %[1]s ping", s.Scontrol, args[0], s.Node, exit)
	}
	return text, err
}
