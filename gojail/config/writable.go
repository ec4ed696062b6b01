// SPDX-License-Identifier: Apache-2.0

package config

import "slices"

// parseWritable parses the keys writable and writable_size, after those they depend on.
func (s *source) parseWritable(j *Jail, f *fileJail) (err error) {
	key := func(last string) []string { return []string{"jail", j.Name, last} }
	if f.Writable != nil {
		j.Writable = *f.Writable
		switch {
		case j.Writable != WritableTmpfs && j.Writable != WritableDisk:
			return s.refuse(key("writable"), `%q: write "tmpfs" or "disk"`, j.Writable)
		case j.Readonly:
			return s.refuse(key("writable"), "contradicts readonly = true; remove one of them")
		case slices.Contains(j.Isolation.JailRoot, "range"):
			return s.refuse(key("writable"), `cannot be combined with "range" in jail_root: overlayfs does not map ids; remove one of them`)
		}
	}
	if f.WriteSize != nil && j.Writable != WritableTmpfs {
		return s.refuse(key("writable_size"), `requires writable = "tmpfs"; with "disk" tmp_size limits what a job writes to the root, too`)
	}
	j.WriteSize, err = s.parseSize(f.WriteSize, key("writable_size")...)
	return err
}
