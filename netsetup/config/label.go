// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"slices"

	"github.com/gojail/gojail/internal/tomlfile"
)

// Labelled lists the rails that a label or a rail's name stands for on this node,
// in the file's order. None is no rail. An unknown label is an error that lists
// the labels there are; so is one whose rails all have policies of other nodes.
func (c *Config) Labelled(label string) ([]*Rail, error) {
	if label == noNetwork {
		return nil, nil
	}
	var here []*Rail
	known := false
	for _, r := range c.Rails {
		if slices.Contains(r.Labels, label) {
			known = true
			if r.Policy.OnNode(c.Node) {
				here = append(here, r)
			}
		}
	}
	if !known {
		return nil, fmt.Errorf("network %.100q is unknown; there are: %s", label, list(append(c.labelNames(), noNetwork)))
	}
	if here == nil {
		return nil, fmt.Errorf("network %q is not on this node, %s; ask for nodes that have it", label, c.Node)
	}
	return here, nil
}

// DefaultRails lists the rails of a job without --jail-net. A node that has none
// of them is no error: the job did not ask.
func (c *Config) DefaultRails() []*Rail {
	rails, err := c.Labelled(c.Default)
	if err != nil { // Parse saw to it that the label is known
		return nil
	}
	return rails
}

// labelNames lists the labels and names of all rails, in the file's order.
func (c *Config) labelNames() []string {
	var names []string
	for _, r := range c.Rails {
		for _, label := range r.Labels {
			if !slices.Contains(names, label) {
				names = append(names, label)
			}
		}
	}
	return names
}

// labels reads the labels of a rail; its own name is the first.
func (r *reader) labels(at *tomlfile.Source, f *fileRail) ([]string, error) {
	k := key("labels")
	labels := []string{f.Name}
	for i, label := range f.Labels {
		if !matches(wordRule, label, labelMost) {
			return nil, at.Refuse(k, "%.100q: a letter or digit, then letters, digits, '.', '_' or '-', at most 64 in all", label)
		}
		if label == noNetwork {
			return nil, at.Refuse(k, `"none" means no network and cannot be a label`)
		}
		if slices.Contains(f.Labels[:i], label) {
			return nil, at.Refuse(k, "%q is there twice", label)
		}
		if label == f.Name {
			continue
		}
		for j := range r.file.Rail {
			if r.file.Rail[j].Name == label {
				return nil, at.Refuse(k, "%q is the name of another rail, which --jail-net=%s stands for", label, label)
			}
		}
		labels = append(labels, label)
	}
	return labels, nil
}

func (r *reader) defaultLabel() error {
	c := r.config
	c.Default = noNetwork
	if r.file.Default == nil {
		return nil
	}
	c.Default = *r.file.Default
	if c.Default != noNetwork && !slices.Contains(c.labelNames(), c.Default) {
		return r.Refuse(key("default"), "there is no rail or label %.100q; there are: %s", c.Default, list(append(c.labelNames(), noNetwork)))
	}
	return nil
}
