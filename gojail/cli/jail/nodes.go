// SPDX-License-Identifier: Apache-2.0

package jail

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/gojail/gojail/gojail/node"
	"github.com/gojail/gojail/gojail/store"
	"github.com/gojail/gojail/internal/command"
	"github.com/gojail/gojail/internal/hostlist"
	"github.com/gojail/gojail/internal/slurm"
)

// nodesFlags are the flags of commands that remove versions only if no node uses them.
type nodesFlags struct {
	except  string
	noSlurm bool
	expiry  time.Duration
}

func (f *nodesFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.except, "except", "",
		"nodes of Slurm that have no jails of this store, such as login[1-2]")
	cmd.Flags().BoolVar(&f.noSlurm, "no-slurm", false, "do not ask Slurm for its nodes: only nodes with a lease count")
	cmd.Flags().DurationVar(&f.expiry, "expire", store.DefaultExpiry,
		"maximum age of a lease, unless Slurm reports that its node is up")
}

// sinfoTimeout is the timeout for slurmctld's answer.
const sinfoTimeout = 20 * time.Second

// askSlurm returns the nodes that must have a lease, with the name of their cluster, which is part of a lease.
func (j *jailCommand) askSlurm(ctx context.Context, f *nodesFlags) (cluster store.Cluster, err error) {
	if f.expiry < time.Hour {
		return cluster, fmt.Errorf("--expire %v: must be at least 1h, within which each node writes its lease again",
			f.expiry)
	}
	if f.noSlurm {
		return cluster, nil
	}
	c, err := j.LoadConfig()
	if err != nil {
		return cluster, err
	}
	except, err := hostlist.Parse(f.except)
	if f.except != "" && err != nil {
		return cluster, fmt.Errorf("--except: %w", err)
	}
	sinfo := node.FindSlurmCommand(c, "sinfo")
	if sinfo == "" {
		return cluster, fmt.Errorf("cannot ask Slurm for its nodes: this machine has no sinfo; run it on a node that " +
			"has it, or give --no-slurm if each node that uses the store has written its lease")
	}
	if cluster.Name = node.SlurmValue(c, "ClusterName"); cluster.Name == "" {
		return cluster, fmt.Errorf("cannot determine the name of this cluster: %s does not have ClusterName; run it "+
			"on a node that has it, or give --no-slurm if each node that uses the store has written its lease",
			filepath.Join(c.Slurm.Conf, "slurm.conf"))
	}
	var nodes nodeList
	odd, err := slurm.Rows(ctx, slurm.Program{
		Command: command.Command{Path: sinfo, Args: []string{"--Node", "--all"}},
		Conf:    filepath.Join(c.Slurm.Conf, "slurm.conf"), Timeout: sinfoTimeout,
	}, []string{"%N", "%T"}, nodes.add)
	if err == nil {
		err = nodes.judge(odd)
	}
	if err != nil {
		return cluster, fmt.Errorf("cannot ask Slurm for its nodes: %w; "+
			"give --no-slurm if each node that uses the store has written its lease", err)
	}
	for _, n := range nodes.list {
		if f.except == "" || !except.Contains(n.Name) {
			cluster.Nodes = append(cluster.Nodes, n)
		}
	}
	return cluster, nil
}

// nodeList are the nodes that sinfo prints, of which each has a row for each of its partitions.
type nodeList struct {
	list []store.Node
	seen map[string]bool
}

// judge fails if the list may lack a node, whose versions would count as unused.
func (l *nodeList) judge(odd slurm.Odd) error {
	switch {
	case odd.Count > 0:
		return fmt.Errorf("cannot parse the output of sinfo: %s", odd.First)
	case len(l.list) == 0:
		return errors.New("sinfo prints no node")
	}
	return nil
}

// stateForm is a state of sinfo(1), with a suffix: a text after it could end like the state of a node that is off.
var stateForm = regexp.MustCompile(`^[a-z_]+[-*~#!%$@^+]?$`)

// add adds the node of a row of its name and its state.
func (l *nodeList) add(row []string) error {
	name, state := row[0], strings.ToLower(row[1])
	switch {
	case name == "" || strings.ContainsAny(name, " \t\n") || !stateForm.MatchString(state):
		return errors.New("a row is not a node and its state")
	case l.seen[name]:
		return nil
	case l.seen == nil:
		l.seen = map[string]bool{}
	}
	l.seen[name] = true
	begins := func(word string) bool { return strings.HasPrefix(state, word) }
	l.list = append(l.list, store.Node{
		Name: name,
		Off:  strings.HasSuffix(state, "~") || begins("powered_down") || begins("future"),
		Down: begins("down") || strings.HasSuffix(state, "*"),
	})
	return nil
}
