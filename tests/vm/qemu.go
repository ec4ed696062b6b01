// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
)

// accelerator is KVM where the processor's own virtualisation is behind
// /dev/kvm, else emulation. The mere file may be one of a nested hypervisor that
// runs only kernels made for it.
func accelerator(cpuinfo, device string) []string {
	text, _ := os.ReadFile(cpuinfo)
	if regexp.MustCompile(`(?m)^flags\s*:.*\b(vmx|svm)\b`).Match(text) {
		if kvm, err := os.OpenFile(device, os.O_RDWR, 0); err == nil {
			kvm.Close()
			return []string{"-accel", "kvm", "-cpu", "host"}
		}
	}
	return []string{"-accel", "tcg,thread=single,tb-size=512", "-cpu", "max"}
}

// share is a directory of this machine that the guest mounts by its tag.
func share(tag, path, access string) []string {
	return []string{"-virtfs", "local,id=" + tag + ",mount_tag=" + tag + ",path=" + escape(path) + ",security_model=none,multidevs=remap" + access}
}

// escape doubles the comma, which parts QEMU's options.
func escape(path string) string { return regexp.MustCompile(`,`).ReplaceAllString(path, ",,") }

// rail is a card behind a port of its own, as SR-IOV wants it, on a hub with
// nothing else: VFs of one card reach each other, those of two cards do not.
func rail(n int) []string {
	return []string{
		"-device", fmt.Sprintf("pcie-root-port,id=port%d,chassis=%d,slot=%d", n, n+1, n+1),
		"-netdev", fmt.Sprintf("hubport,id=link%d,hubid=%d", n, n),
		"-device", fmt.Sprintf("igb,id=card%d,bus=port%d,netdev=link%d,mac=02:00:00:00:%02x:00", n, n, n, n+1),
	}
}

// commandLine is the guest kernel's. An emulated processor has been seen to lose the
// interrupt of a timer that is set for each next event, and to wait for it for ever: a
// periodic tick comes again. A guest that stands still all the same ends as a panic.
const commandLine = "console=ttyS0 panic=-1 oops=panic quiet nohz=off highres=off " +
	"rcupdate.rcu_cpu_stall_timeout=120 sysctl.kernel.panic_on_rcu_stall=1"

// arguments is QEMU's command line for a guest whose files are below dir.
func arguments(p places, dir string, o Options) []string {
	const data = "usr/share/"
	tools := filepath.Join(p.fetched, "tools")
	// 2 GiB at most: above 4 GiB of address space the firmware places the VFs'
	// 64-bit registers where QEMU 10 maps only their low 32 bits, and igbvf fails.
	args := []string{"-L", filepath.Join(tools, data, "qemu"), "-L", filepath.Join(tools, data, "seabios"), "-L", filepath.Join(tools, "usr/lib/ipxe/qemu"),
		"-M", "q35", "-smp", "2", "-m", "2048", "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
		"-kernel", p.kernel, "-initrd", filepath.Join(dir, "initramfs"),
		"-append", commandLine,
		"-serial", "file:" + escape(filepath.Join(dir, "console")), "-device", "virtio-rng-pci"}
	args = append(args, accelerator("/proc/cpuinfo", "/dev/kvm")...)
	args = append(args, share(TagRoot, p.root, ",readonly=on")...)
	args = append(args, share(TagRepository, p.repository, ",readonly=on")...)
	args = append(args, share(TagShare, filepath.Join(dir, "share"), "")...)
	if p.storage != "" {
		args = append(args, share(TagStorage, p.storage, ",readonly=on")...)
	}
	if p.disk != "" { // what the guest writes is a temporary file of QEMU's, without a name
		args = append(args, "-drive", "if=virtio,format=raw,snapshot=on,file="+escape(p.disk))
	}
	for n := range 2 {
		args = append(args, rail(n)...)
	}
	if o.Terminal {
		args = append(args, "-chardev", "stdio,id=terminal,signal=off", "-serial", "chardev:terminal")
	}
	return args
}
