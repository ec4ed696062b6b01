// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gojail/gojail/gojail/contract"
	"github.com/gojail/gojail/internal/oneline"
	"github.com/gojail/gojail/internal/rootpath"
)

// userMountsMax is the limit of user mounts in a sandbox; the rest of contract.TreesMax is for the job's
// own trees.
const userMountsMax = contract.TreesMax - 8

// UserMount is one --jail-mount=SRC:DST[:ro|:rw].
type UserMount struct {
	Source      string
	Destination string
	Readonly    bool
}

// ParseUserMounts parses the values of --jail-mount, joined by commas. It checks their form;
// Config.Permit decides whether they are permitted.
func ParseUserMounts(text string) ([]UserMount, error) {
	if text == "" {
		return nil, nil
	}
	var mounts []UserMount
	for _, item := range strings.Split(text, ",") {
		m, err := parseUserMount(item)
		if err != nil {
			return nil, fmt.Errorf("--jail-mount=%.200s: %w", oneline.Printable(item), err)
		}
		for _, earlier := range mounts {
			if Under(earlier.Destination, m.Destination) {
				return nil, fmt.Errorf("--jail-mount=%.200s: would hide the earlier mount on %s",
					oneline.Printable(item), earlier.Destination)
			}
		}
		mounts = append(mounts, m)
	}
	if len(mounts) > userMountsMax {
		return nil, fmt.Errorf("--jail-mount: too many mounts: %d; at most %d", len(mounts), userMountsMax)
	}
	return mounts, nil
}

func parseUserMount(item string) (m UserMount, err error) {
	parts := strings.Split(item, ":")
	if len(parts) < 2 || len(parts) > 3 {
		return m, fmt.Errorf("must be SOURCE:DESTINATION or SOURCE:DESTINATION:ro")
	}
	m.Source, m.Destination = parts[0], parts[1]
	if err := rootpath.CheckClean(m.Source); err != nil {
		return m, fmt.Errorf("source %w", err)
	}
	if err := rootpath.CheckClean(m.Destination); err != nil {
		return m, fmt.Errorf("destination %w", err)
	}
	if len(parts) == 3 {
		m.Readonly = parts[2] == "ro"
		if parts[2] != "ro" && parts[2] != "rw" {
			return m, fmt.Errorf("unknown option %q; known: ro rw", parts[2])
		}
	}
	return m, nil
}

// Permit returns nil if the site's rules permit a user mount. source is the real path of the directory,
// resolved with the user's rights; destination is the path in the jail. A caller that finds a symbolic
// link at the destination calls Permit again with the link's target. trusted are the paths that root uses
// afterwards.
func (c *Config) Permit(j *Jail, source, destination string, readonly bool, trusted []string) error {
	if err := c.refuseUserMount(j, destination); err != nil {
		return err
	}
	for _, place := range append(slices.Clone(trusted), c.Slurm.Munge, c.Scratch) {
		// Scratch is used before the stage exists, so only a destination inside it matters: a node's disk
		// is often mounted above it.
		if covers(destination, place) && (place != c.Scratch || Under(destination, place)) {
			return fmt.Errorf(
				"cannot mount on %s: the node's Slurm and gojail use their own %s; choose another directory",
				destination, place)
		}
	}
	if len(j.UserMounts) == 0 {
		return fmt.Errorf("jail %s does not permit --jail-mount", j.Name)
	}
	var reason error
	for _, rule := range j.UserMounts {
		switch {
		case !Under(source, rule.Source):
			continue
		case rule.Destination != "" && !Under(destination, rule.Destination):
			reason = fmt.Errorf("%s may be mounted in jail %s only at or below %s, not on %s", source, j.Name,
				rule.Destination, destination)
		case rule.Readonly && !readonly:
			reason = fmt.Errorf("%s may be mounted in jail %s only read-only; use %s:%s:ro", source, j.Name, source,
				destination)
		default:
			return nil
		}
	}
	if reason != nil {
		return reason
	}
	return fmt.Errorf("%s may not be mounted in jail %s; permitted: %s", source, j.Name,
		strings.Join(describePermitted(j), ", "))
}

func describePermitted(j *Jail) []string {
	var list []string
	for _, rule := range j.UserMounts {
		list = append(list, rule.Source)
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// refuseUserMount refuses a destination that is, covers or lies below a closed directory.
func (c *Config) refuseUserMount(j *Jail, destination string) error {
	closed := slices.Concat(closedToUsers, c.reservedPaths(j))
	for _, place := range closed {
		if covers(destination, place) {
			return fmt.Errorf("cannot mount on %s: it would hide or change %s of the jail", destination, place)
		}
	}
	return nil
}

// covers reports whether a mount on destination would hide place or something below it.
func covers(destination, place string) bool {
	return Under(destination, place) || Under(place, destination)
}

// String returns the mount as the user wrote it, without the default ":rw".
func (m UserMount) String() string {
	text := m.Source + ":" + m.Destination
	if m.Readonly {
		text += ":ro"
	}
	return text
}
