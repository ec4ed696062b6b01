// SPDX-License-Identifier: Apache-2.0

package node

import (
	"debug/elf"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gojail/gojail/internal/rootpath"
)

// pmixNames are the names by which Slurm's mpi/pmix opens the library, the second only up to 22.05.
var pmixNames = []string{"libpmix.so.2", "libpmix.so"}

// findPMIx returns the directories from which the plugins mpi/pmix open libpmix with dlopen(3). The ELF header of a
// plugin does not name the library: the path is among its constants.
func findPMIx(pluginDirs []string) []string {
	var dirs []string
	for _, dir := range pluginDirs {
		plugins, _ := filepath.Glob(filepath.Join(dir, "mpi_pmix*.so"))
		for _, plugin := range plugins {
			dirs = append(dirs, slices.DeleteFunc(pmixConstantPaths(plugin),
				func(dir string) bool { return !hasPMIx(dir) })...)
		}
	}
	slices.Sort(dirs)
	return slices.Compact(dirs)
}

func hasPMIx(dir string) bool {
	return slices.ContainsFunc(pmixNames, func(name string) bool { return rootpath.Exists(filepath.Join(dir, name)) })
}

// pmixConstantPaths returns the absolute paths among the constants of a library.
func pmixConstantPaths(library string) []string {
	f, err := elf.Open(library)
	if err != nil {
		return nil
	}
	defer f.Close()
	section := f.Section(".rodata")
	if section == nil {
		return nil
	}
	data, _ := section.Data()
	return slices.DeleteFunc(strings.Split(string(data), "\x00"), func(text string) bool {
		return !strings.HasPrefix(text, "/") || text == "/" || rootpath.CheckClean(strings.TrimSuffix(text, "/")) != nil
	})
}

// findPMIxFiles returns the files of libpmix in a directory: the library by its names, and the directory
// of its components (MCA), which it opens when it starts.
func findPMIxFiles(dir string) (libraries []string, components string) {
	for _, name := range pmixNames {
		if path := filepath.Join(dir, name); rootpath.Exists(path) {
			libraries = append(libraries, path)
		}
	}
	if path := filepath.Join(dir, "pmix"); rootpath.Exists(path) {
		components = path
	}
	return libraries, components
}

// findPMIxNeeds returns the files of libpmix whose own libraries are needed, too.
func findPMIxNeeds(dirs []string) []string {
	var need []string
	for _, dir := range dirs {
		libraries, components := findPMIxFiles(dir)
		need = append(need, libraries...)
		found, _ := filepath.Glob(filepath.Join(components, "*.so"))
		need = append(need, found...)
	}
	return need
}

// findMissingPMIx returns the files of libpmix that a jail does not have. If the jail has a libpmix at the path that
// Slurm opens, it keeps that, with which its MPI was built.
func findMissingPMIx(root int, dirs []string) []string {
	var missing []string
	for _, dir := range dirs {
		libraries, components := findPMIxFiles(dir)
		if slices.ContainsFunc(libraries, func(path string) bool {
			st, err := StatIn(root, path)
			return err == nil && st.Size > 0
		}) {
			continue
		}
		missing = append(missing, libraries...)
		if components != "" {
			missing = append(missing, components)
		}
	}
	return missing
}
