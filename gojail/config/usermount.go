// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gojail/gojail/gojail/contract"
	"github.com/gojail/gojail/internal/rootpath"
	"github.com/gojail/gojail/internal/tomlfile"
)

// userMountsMax leaves room among the trees of one sandbox for the job's own.
const userMountsMax = contract.TreesMax - 8

// UserMount is one --jail-mount=SRC:DST[:ro|:rw].
type UserMount struct {
	Source      string
	Destination string
	Readonly    bool
}

// ParseUserMounts reads the values of --jail-mount, joined by commas. It looks at
// the text only; Config.Permit decides.
func ParseUserMounts(text string) ([]UserMount, error) {
	if text == "" {
		return nil, nil
	}
	var mounts []UserMount
	for _, item := range strings.Split(text, ",") {
		m, err := parseUserMount(item)
		if err != nil {
			return nil, fmt.Errorf("--jail-mount=%.200s: %w", tomlfile.Printable(item), err)
		}
		for _, earlier := range mounts {
			if Under(earlier.Destination, m.Destination) {
				return nil, fmt.Errorf("--jail-mount=%.200s: would hide the mount on %s, which comes before it", tomlfile.Printable(item), earlier.Destination)
			}
		}
		mounts = append(mounts, m)
	}
	if len(mounts) > userMountsMax {
		return nil, fmt.Errorf("--jail-mount: %d mounts; at most %d", len(mounts), userMountsMax)
	}
	return mounts, nil
}

func parseUserMount(item string) (m UserMount, err error) {
	parts := strings.Split(item, ":")
	if len(parts) < 2 || len(parts) > 3 {
		return m, fmt.Errorf("write it as SOURCE:DESTINATION or SOURCE:DESTINATION:ro")
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
			return m, fmt.Errorf("%q is neither ro nor rw", parts[2])
		}
	}
	return m, nil
}

// Permit decides about a user mount by the site's rules. Source is where the
// path really is, resolved with the user's own rights; destination is the path
// in the jail. A caller that finds the destination to be a symbolic link asks
// again with the place that it leads to. trusted is what root goes on using.
func (c *Config) Permit(j *Jail, source, destination string, readonly bool, trusted []string) error {
	if err := c.refuseUser(j, destination); err != nil {
		return err
	}
	for _, place := range append(slices.Clone(trusted), c.Slurm.Munge, c.Scratch) {
		// Only what lies in scratch: it is used before the stage is, and a node's disk is often above it.
		if covers(destination, place) && (place != c.Scratch || Under(destination, place)) {
			return fmt.Errorf("nothing may be mounted on %s: the node's Slurm and gojail use their own %s; choose another directory", destination, place)
		}
	}
	if len(j.UserMounts) == 0 {
		return fmt.Errorf("jail %s permits no --jail-mount", j.Name)
	}
	var reason error
	for _, rule := range j.UserMounts {
		switch {
		case !Under(source, rule.Source):
			continue
		case rule.Destination != "" && !Under(destination, rule.Destination):
			reason = fmt.Errorf("%s may be mounted in jail %s only on %s and below, not on %s", source, j.Name, rule.Destination, destination)
		case rule.Readonly && !readonly:
			reason = fmt.Errorf("%s may be mounted in jail %s only read-only; write %s:%s:ro", source, j.Name, source, destination)
		default:
			return nil
		}
	}
	if reason != nil {
		return reason
	}
	return fmt.Errorf("%s may not be mounted in jail %s; permitted are: %s", source, j.Name, strings.Join(describePermitted(j), ", "))
}

func describePermitted(j *Jail) []string {
	var list []string
	for _, rule := range j.UserMounts {
		list = append(list, rule.Source)
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// userClosed are the places where no user mount may go: a program that runs with
// more rights than its user could be made to load or believe what is there.
var userClosed = []string{
	"/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/usr", "/etc", "/boot", "/nix",
	"/dev", "/proc", "/sys", "/run", "/tmp",
}

// refuseUser refuses a destination that is, covers or lies below a closed place.
func (c *Config) refuseUser(j *Jail, destination string) error {
	closed := slices.Concat(userClosed, c.reservedPaths(j))
	for _, place := range closed {
		if covers(destination, place) {
			return fmt.Errorf("nothing may be mounted on %s: it would cover or change %s of the jail", destination, place)
		}
	}
	return nil
}

// covers tells whether a mount on destination would hide place, or something in it.
func covers(destination, place string) bool {
	return Under(destination, place) || Under(place, destination)
}
