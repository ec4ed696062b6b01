// SPDX-License-Identifier: Apache-2.0

package config

import "github.com/gojail/gojail/hostlist"

// HostList is a list of node names as Slurm writes them.
type HostList = hostlist.List

// ParseHostList reads one, see hostlist.Parse.
func ParseHostList(text string) (HostList, error) { return hostlist.Parse(text) }
