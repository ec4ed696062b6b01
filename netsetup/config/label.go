// SPDX-License-Identifier: Apache-2.0

package config

import (
	"slices"

	"github.com/gojail/gojail/internal/refusal"
	"github.com/gojail/gojail/internal/tomlfile"
)

// FindRails returns the rails that a label or a rail's name stands for on this node, in the
// file's order; None stands for no rail. It fails for an unknown label, with a list of the
// known ones, and for a label whose rails all have policies of other nodes.
func (c *Config) FindRails(label string) ([]*Rail, error) {
	if label == noNetwork {
		return nil, nil
	}
	var here []*Rail
	known := false
	for _, r := range c.Rails {
		if slices.Contains(r.Labels, label) {
			known = true
			if r.Policy.AppliesTo(c.Node) {
				here = append(here, r)
			}
		}
	}
	if !known {
		return nil, refusal.Errorf("network %.100q is unknown; known ones: %s", label,
			joinNames(append(c.listLabels(), noNetwork)))
	}
	if here == nil {
		return nil, refusal.Errorf("network %q is not available on this node, %s; request nodes that have it", label,
			c.Node)
	}
	return here, nil
}

// FindDefaultRails returns the rails of a job without --jail-net. A node without any of them
// is no error: the job did not ask for a network.
func (c *Config) FindDefaultRails() []*Rail {
	rails, err := c.FindRails(c.Default)
	if err != nil { // no rail of it on this node; Parse has checked the label
		return nil
	}
	return rails
}

// listLabels returns the labels and names of all rails, in the file's order.
func (c *Config) listLabels() []string {
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

// parseLabels reads the labels of a rail; the first is the rail's own name.
func (r *reader) parseLabels(at *tomlfile.Source, f *fileRail) ([]string, error) {
	k := key("labels")
	labels := []string{f.Name}
	for i, label := range f.Labels {
		if !matches(wordRule, label, labelMost) {
			return nil,
				at.Refuse(k, "%.100q: a letter or digit, then letters, digits, '.', '_' or '-', at most 64 in all",
					label)
		}
		if label == noNetwork {
			return nil, at.Refuse(k, `"none" means no network and cannot be a label`)
		}
		if slices.Contains(f.Labels[:i], label) {
			return nil, at.Refuse(k, "duplicate %q", label)
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

// parseDefault reads the label of jobs without --jail-net.
func (r *reader) parseDefault() error {
	c := r.config
	c.Default = noNetwork
	if r.file.Default == nil {
		return nil
	}
	c.Default = *r.file.Default
	if c.Default != noNetwork && !slices.Contains(c.listLabels(), c.Default) {
		return r.Refuse(key("default"), "unknown rail or label %.100q; known ones: %s", c.Default,
			joinNames(append(c.listLabels(), noNetwork)))
	}
	return nil
}
