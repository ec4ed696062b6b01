// SPDX-License-Identifier: Apache-2.0

package check

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/gojail/gojail/gojail/node"
	"github.com/gojail/gojail/internal/oneline"
)

// checkRelease reports whether the plugin knows the release of the node's Slurm (spank/release). Any other Slurm
// refuses it, and every srun, sbatch and slurmd fails.
func (c *checker) checkRelease(plugin string, conf node.SlurmConf) {
	known, err := readKnownReleases(plugin)
	if err != nil {
		c.fail("plugstack", c.describeInstallation(), "%v", err)
		return
	}
	first, last := known[0].shorten(), known[len(known)-1].shorten()
	path, release := findNodesRelease(slices.Concat(conf.Plugins, node.ReadSlurm(c.config).Dirs))
	switch {
	case path == "":
		c.warn("plugstack", "set PluginDir in slurm.conf",
			"cannot find Slurm's plugins, so its release is unknown; gojail is for %s to %s", first, last)
	case !slices.ContainsFunc(known, func(v slurmVersion) bool { return v>>8 == release>>8 }):
		c.fail("plugstack", "install a gojail that knows this release, or build one with its headers",
			"%s is for Slurm %s to %s, and this node has %s (%s): srun, sbatch and slurmd refuse it",
			plugin, first, last, release, path)
	default:
		c.checkOrder(plugin, conf, release)
		c.ok("plugstack", "gojail %s, for Slurm %s to %s, this node has %s (%s)",
			readGojailVersion(plugin), first, last, release, filepath.Dir(path))
	}
}

// findNodesRelease returns the release of the node's Slurm, read from one of Slurm's own plugins in the
// first directory that has one. path is "" if none has.
func findNodesRelease(dirs []string) (path string, release slurmVersion) {
	for _, dir := range dirs {
		for _, pattern := range []string{"auth_*.so", "cred_*.so", "hash_*.so"} {
			found, _ := filepath.Glob(filepath.Join(dir, pattern))
			for _, path := range found {
				if release, err := readPluginVersion(path); err == nil {
					return path, release
				}
			}
		}
	}
	return "", 0
}

// slurmVersion is SLURM_VERSION_NUMBER of slurm/slurm_version.h: a byte each for major, minor and micro.
type slurmVersion uint32

func (v slurmVersion) String() string { return fmt.Sprintf("%d.%02d.%d", v>>16, v>>8&0xff, v&0xff) }

// shorten returns the release without its third number, as its packages are called.
func (v slurmVersion) shorten() string { return fmt.Sprintf("%d.%02d", v>>16, v>>8&0xff) }

// readKnownReleases returns the releases of Slurm that gojail's plugin knows, from the oldest on.
func readKnownReleases(path string) (known []slurmVersion, err error) {
	list, order, err := readVariable(path, "gojail_releases", 4*maxReleases)
	if err == nil && (len(list) == 0 || len(list)%4 != 0) {
		err = fmt.Errorf("%s is not gojail's plugin", path)
	}
	for ; err == nil && len(list) > 0; list = list[4:] {
		known = append(known, slurmVersion(order.Uint32(list)))
	}
	return known, err
}

// maxReleases is the largest number of releases that readKnownReleases takes from a file.
const maxReleases = 64

// readPluginVersion returns the variable plugin_version, which every plugin of Slurm's own has.
func readPluginVersion(path string) (slurmVersion, error) {
	number, order, err := readVariable(path, "plugin_version", 4)
	if err == nil && len(number) != 4 {
		err = fmt.Errorf("%s is not a Slurm plugin", path)
	}
	if err != nil {
		return 0, err
	}
	return slurmVersion(order.Uint32(number)), nil
}

// readGojailVersion returns the version of gojail that a plugin belongs to, or "unknown".
func readGojailVersion(path string) string {
	text, _, err := readVariable(path, "gojail_version", 64)
	version, _, ended := bytes.Cut(text, []byte{0})
	if err != nil || !ended {
		return "unknown"
	}
	return string(version)
}

// readVariable returns the first bytes of a variable of a plugin, at most size.
func readVariable(path, name string, size int) ([]byte, binary.ByteOrder, error) {
	f, err := elf.Open(path)
	if err != nil {
		return nil, nil, fmt.Errorf("cannot read the plugin %s: %v", path, oneline.Cause(err))
	}
	defer f.Close()
	symbols, _ := f.DynamicSymbols()
	for _, s := range symbols {
		if s.Name != name || int(s.Section) >= len(f.Sections) {
			continue
		}
		section := f.Sections[s.Section]
		value := make([]byte, min(uint64(size), s.Size))
		if _, err := section.ReadAt(value, int64(s.Value-section.Addr)); err == nil {
			return value, f.ByteOrder, nil
		}
	}
	return nil, nil, fmt.Errorf("%s is not a Slurm plugin with %s", path, name)
}
