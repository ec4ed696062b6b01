// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"bytes"
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// modules that the guest loads at its start, each after those it depends on.
var modules = []string{
	"virtio_pci", "9pnet_virtio", "9p", "overlay", "virtio_blk", "crc32c_generic", "ext4", "quota_v2", "virtio_rng", // to boot
	"igb", "igbvf", "veth", "macvlan", "ipvlan", "dummy", "bridge", "8021q", "tun", "psample", // networks
	"ib_uverbs", "rdma_ucm", "ib_umad", "crc32_generic", "rdma_rxe", // rxe asks the kernel for crc32 by name
	"siw",                       // only with tests/vm/modules
	"loop", "squashfs", "erofs", // for jails
	"nfs", "nfsv3", "nfsv4", "nfsd", "sch_netem", "fuse", "autofs4", // shared storage
}

// module is one file of a kernel's modules, as it is loaded.
type module struct {
	name string
	text []byte
}

// makeInitramfs writes the archive that the guest boots from: its pid 1 and the modules that this loads.
func makeInitramfs(ctx context.Context, p places, modules []string, path string) error {
	init := path + ".init"
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", init, "./tests/vm/guest")
	build.Dir, build.Env = p.repository, append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+p.processor.arch)
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("vm: build the guest's first process: %w: %s", err, out)
	}
	program, err := os.ReadFile(init)
	if err != nil {
		return err
	}
	files, err := readModules(ctx, p, modules)
	if err != nil {
		return err
	}
	return os.WriteFile(path, formatArchive(program, files), 0o644)
}

// readModules returns the wanted modules and all that they depend on, in an
// order in which they can be loaded. It omits modules that are missing or built into the kernel.
func readModules(ctx context.Context, p places, wanted []string) ([]module, error) {
	paths, err := findModules(p)
	if err != nil {
		return nil, err
	}
	var ordered []module
	done := map[string]bool{}
	var add func(name string) error
	add = func(name string) error {
		name = moduleName(name)
		path := paths[name]
		if done[name] || path == "" {
			return nil
		}
		done[name] = true
		text, err := p.readModule(ctx, path)
		if err != nil {
			return err
		}
		needs, err := readDependencies(text)
		if err != nil {
			return fmt.Errorf("vm: %s: %w", path, err)
		}
		for _, other := range needs {
			if err := add(other); err != nil {
				return err
			}
		}
		ordered = append(ordered, module{name, text})
		return nil
	}
	for _, name := range wanted {
		if err := add(name); err != nil {
			return nil, err
		}
	}
	return ordered, nil
}

// findModules returns the path of every module by its name. A module that tests/vm/modules built
// replaces the kernel's.
func findModules(p places) (map[string]string, error) {
	paths := map[string]string{}
	for _, dir := range []string{"usr/lib/modules", "own"} {
		dir, err := filepath.EvalSymlinks(filepath.Join(p.kernel, dir))
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err == nil {
			err = filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
				if name, _, found := strings.Cut(filepath.Base(path), ".ko"); found {
					paths[moduleName(name)] = path
				}
				return err
			})
		}
		if err != nil {
			return nil, err
		}
	}
	return paths, nil
}

func (p places) readModule(ctx context.Context, path string) ([]byte, error) {
	if strings.HasSuffix(path, ".xz") {
		return p.runTool(ctx, "usr/bin/xz", "-dc", path)
	}
	return os.ReadFile(path)
}

// moduleName returns the name of a module as the kernel prints it.
func moduleName(name string) string { return strings.ReplaceAll(name, "-", "_") }

// readDependencies reads the line depends= of a module's section .modinfo (include/linux/module.h).
func readDependencies(text []byte) ([]string, error) {
	object, err := elf.NewFile(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	section := object.Section(".modinfo")
	if section == nil {
		return nil, fmt.Errorf("no section .modinfo")
	}
	info, err := section.Data()
	if err != nil {
		return nil, err
	}
	for line := range strings.SplitSeq(string(info), "\x00") {
		if list, found := strings.CutPrefix(line, "depends="); found && list != "" {
			return strings.Split(list, ","), nil
		}
	}
	return nil, nil
}

// formatArchive returns an archive of init and the modules in the format newc
// (Documentation/driver-api/early-userspace/buffer-format.rst).
func formatArchive(init []byte, modules []module) []byte {
	var archive bytes.Buffer
	inode := 0
	entry := func(name string, mode int, text []byte) {
		inode++
		fmt.Fprintf(&archive, "070701%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%s\x00",
			inode, mode, 0, 0, 1, 0, len(text), 0, 0, 0, 0, len(name)+1, 0, name)
		padToWord(&archive)
		archive.Write(text)
		padToWord(&archive)
	}
	entry("dev", 0o040755, nil)
	entry("init", 0o100755, init)
	entry("modules", 0o040755, nil)
	for i, m := range modules {
		entry(fmt.Sprintf("modules/%03d-%s.ko", i, m.name), 0o100644, m.text)
	}
	entry("TRAILER!!!", 0, nil)
	return archive.Bytes()
}

// padToWord appends zeros up to a multiple of four bytes.
func padToWord(b *bytes.Buffer) {
	for b.Len()%4 != 0 {
		b.WriteByte(0)
	}
}
