// SPDX-License-Identifier: Apache-2.0

package node

import (
	"debug/elf"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gojail/gojail/gojail/config"
	"github.com/gojail/gojail/internal/rootpath"
	"github.com/gojail/gojail/internal/slurm"
)

// slurmParts are the parts of the node's Slurm that `srun` in a jail needs.
type slurmParts struct {
	Dirs      []string // plugin directories
	Files     []string // commands, libraries of Slurm and munge, plugins of plugstack.conf
	Libraries []string // further libraries that Files need
	pmix      []string // directories of libpmix
}

// clientPlugins are the plugins that client commands load, whose libraries are needed, too.
var clientPlugins = []string{"libslurm*.so", "auth_*.so", "cred_*.so", "hash_*.so", "cli_filter_none.so", "mpi_*.so",
	"http_parser_*.so", "url_parser_*.so", "tls_*.so"} // 25.11

// glibc are libraries that are never mounted in a jail: they must match the jail's own dynamic linker.
var glibc = []string{"libc.so.", "libm.so.", "libresolv.so.", "libdl.so.", "libpthread.so.", "librt.so.", "ld-linux",
	"linux-vdso"}

// ReadSlurm finds the parts of the node's Slurm. It omits missing files, which `gojail check` reports.
func ReadSlurm(c *config.Config) slurmParts {
	var parts slurmParts
	commands, _ := FindCommands(c)
	conf := ReadSlurmConf(c)
	parts.Dirs = findPluginDirs(commands, conf.Plugins, listLibDirs())

	need := append(slices.Clone(commands), findStepd(c)...)
	plugins := clientPlugins
	if conf.Values["authtype"] == "auth/slurm" {
		plugins = append(slices.Clone(plugins), "serializer_json*.so") // of its credentials
	}
	for _, dir := range parts.Dirs {
		for _, pattern := range plugins {
			found, _ := filepath.Glob(filepath.Join(dir, pattern))
			need = append(need, found...)
		}
	}
	parts.pmix = findPMIx(parts.Dirs)
	need = append(need, findPMIxNeeds(parts.pmix)...)
	parts.Files = append(commands, findOwnLibraries()...)
	for _, plugin := range conf.Plugstack {
		if filepath.IsAbs(plugin.Path) && rootpath.Exists(plugin.Path) {
			parts.Files = append(parts.Files, plugin.Path)
		}
	}
	for _, path := range findClosure(need, parts.Dirs) {
		base := filepath.Base(path)
		switch {
		case isInDirs(path, parts.Dirs) || filepath.Base(path) == pmixNames[0]: // see findMissingPMIx
		case strings.HasPrefix(base, "libslurm") || strings.HasPrefix(base, "libmunge"):
			parts.Files = append(parts.Files, path)
		default:
			parts.Libraries = append(parts.Libraries, path)
		}
	}
	slices.Sort(parts.Files)
	parts.Files = slices.Compact(parts.Files)
	return parts
}

// findPluginDirs returns the plugin directories: those of slurm.conf, and the built-in one, in which Slurm's commands
// look for their library (RUNPATH), or which the configuration of the dynamic linker names, if a packager removed the
// RUNPATH. A directory of the linker counts only if it has plugins: a RUNPATH may have PREFIX/lib, too.
func findPluginDirs(commands, configured, libDirs []string) []string {
	dirs := slices.Clone(configured)
	for _, command := range commands {
		dirs = append(dirs, readRunpath(command)...)
	}
	slices.Sort(dirs)
	dirs = slices.DeleteFunc(slices.Compact(dirs), func(dir string) bool {
		return !rootpath.Exists(dir) || slices.Contains(libDirs, dir) && !hasPlugins(dir)
	})
	if len(commands) > 0 && len(dirs) == 0 {
		dirs = slices.DeleteFunc(slices.Clone(libDirs), func(dir string) bool { return !hasPlugins(dir) })
	}
	return dirs
}

// hasPlugins reports whether a directory has plugins of Slurm, of which each installation has one of this kind.
func hasPlugins(dir string) bool {
	found, _ := filepath.Glob(filepath.Join(dir, "auth_*.so"))
	return len(found) > 0
}

// FindCommand returns the path of the gojail command that runs in any jail, whatever C library the jail
// has; make install puts it beside the plugin. It returns "" if there is none.
func FindCommand(c *config.Config) string {
	conf := ReadSlurmConf(c)
	for _, plugin := range conf.GojailPlugins() {
		if path := filepath.Join(filepath.Dir(plugin.Path), "gojail"); filepath.IsAbs(path) && rootpath.Exists(path) {
			return path
		}
	}
	return ""
}

// findStepd returns slurmstepd, below slurm.host first. Slurm 24.11 and 25.05 started a TaskProlog
// through it, in the jail, by a descriptor: the jail must have its libraries, but not the program.
func findStepd(c *config.Config) []string {
	for _, dir := range slurm.ListDirs("sbin", c.Slurm.Host) {
		for _, dir := range []string{dir, filepath.Join(dir, "../libexec/slurm")} { // of the same prefix
			if path := filepath.Join(dir, "slurmstepd"); rootpath.Exists(path) {
				return []string{path}
			}
		}
	}
	return nil
}

// findOwnLibraries returns Slurm's libraries that users' programs link (libslurm.so.N, libpmi.so.0,
// libpmi2.so.0), by their SONAME.
func findOwnLibraries() []string {
	var list []string
	for _, dir := range listLibDirs() {
		for _, pattern := range []string{"libslurm.so.*", "libpmi.so.*", "libpmi2.so.*"} {
			found, _ := filepath.Glob(filepath.Join(dir, pattern))
			for _, path := range found {
				if name := readSoname(path); name == filepath.Base(path) {
					list = append(list, path)
				}
			}
		}
	}
	return list
}

// findClosure returns the libraries that files need, directly or indirectly: the output of ldd(1),
// without running a program.
func findClosure(files, dirs []string) []string {
	found := map[string]bool{}
	for queue := slices.Clone(files); len(queue) > 0; queue = queue[1:] {
		f, err := elf.Open(queue[0])
		if err != nil {
			continue
		}
		names, _ := f.ImportedLibraries()
		machine := f.Machine
		f.Close()
		for _, name := range names {
			if slices.ContainsFunc(glibc, func(prefix string) bool { return strings.HasPrefix(name, prefix) }) {
				continue
			}
			path := findLibrary(name, machine, dirs)
			if path != "" && !found[path] {
				found[path] = true
				queue = append(queue, path)
			}
		}
	}
	return slices.Sorted(maps.Keys(found))
}

func findLibrary(name string, machine elf.Machine, dirs []string) string {
	for _, dir := range slices.Concat(dirs, listLibDirs()) {
		path := filepath.Join(dir, name)
		f, err := elf.Open(path)
		if err != nil {
			continue
		}
		same := f.Machine == machine
		f.Close()
		if same {
			return path
		}
	}
	return ""
}

// listLibDirs returns the directories of ld.so(8): its configuration, then the built-in ones.
func listLibDirs() []string {
	dirs := readLdDirs(ldConf, 0)
	return resolveDirs(append(dirs, "/usr/lib64", "/usr/lib", "/lib64", "/lib"))
}

// resolveDirs returns the real paths of the directories that exist, without duplicates such as /lib.
func resolveDirs(dirs []string) []string {
	seen := map[string]bool{}
	var list []string
	for _, dir := range dirs {
		real, err := filepath.EvalSymlinks(dir)
		if err == nil && !seen[real] {
			seen[real] = true
			list = append(list, real)
		}
	}
	return list
}

func isInDirs(path string, dirs []string) bool {
	return slices.ContainsFunc(dirs, func(dir string) bool { return config.Under(path, dir) })
}

// readRunpath returns the directories that a program searches first for libraries. Slurm's commands name
// the plugin directory there.
func readRunpath(program string) []string {
	return readDynamic(program, elf.DT_RUNPATH, elf.DT_RPATH)
}

func readSoname(path string) string {
	if names := readDynamic(path, elf.DT_SONAME); len(names) > 0 {
		return names[0]
	}
	return ""
}

func readDynamic(path string, tags ...elf.DynTag) []string {
	f, err := elf.Open(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	var list []string
	for _, tag := range tags {
		values, _ := f.DynString(tag)
		for _, value := range values {
			list = append(list, strings.Split(value, ":")...)
		}
	}
	return list
}

// HostName returns the name of this machine without its domain, or "" if the kernel does not tell it.
func HostName() string {
	name, _ := os.Hostname()
	host, _, _ := strings.Cut(name, ".")
	return host
}
