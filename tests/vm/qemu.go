// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
)

// acceleratorArguments selects KVM if /dev/kvm stands for the processor's own virtualisation, else
// emulation. The file alone does not show that: a nested hypervisor may run only kernels made for it.
func acceleratorArguments(cpuinfo, device string) []string {
	text, _ := os.ReadFile(cpuinfo)
	if regexp.MustCompile(`(?m)^flags\s*:.*\b(vmx|svm)\b`).Match(text) {
		if kvm, err := os.OpenFile(device, os.O_RDWR, 0); err == nil {
			kvm.Close()
			return []string{"-accel", "kvm", "-cpu", "host"}
		}
	}
	return []string{"-accel", "tcg,thread=single,tb-size=512", "-cpu", "max"}
}

// shareArguments returns the options for a directory of this machine that the guest mounts by its tag.
func shareArguments(tag, path, access string) []string {
	return []string{"-virtfs", "local,id=" + tag + ",mount_tag=" + tag + ",path=" + escapeCommas(path) + ",security_model=none,multidevs=remap" + access}
}

// escapeCommas doubles commas, which separate QEMU's options.
func escapeCommas(path string) string { return regexp.MustCompile(`,`).ReplaceAllString(path, ",,") }

// cardArguments returns the options for a card behind a port of its own, which SR-IOV requires, on a hub
// with nothing else: VFs of one card reach each other, those of two cards do not.
func cardArguments(n int) []string {
	return []string{
		"-device", fmt.Sprintf("pcie-root-port,id=port%d,chassis=%d,slot=%d", n, n+1, n+1),
		"-netdev", fmt.Sprintf("hubport,id=link%d,hubid=%d", n, n),
		"-device", fmt.Sprintf("igb,id=card%d,bus=port%d,netdev=link%d,mac=02:00:00:00:%02x:00", n, n, n, n+1),
	}
}

// commandLine is the command line of each guest's kernel. An emulated processor was seen to lose the
// interrupt of a timer that is set for each next event, and to wait for it forever; a periodic tick
// recurs. A guest that stalls nevertheless panics.
const commandLine = "panic=-1 oops=panic quiet nohz=off highres=off " +
	"rcupdate.rcu_cpu_stall_timeout=120 sysctl.kernel.panic_on_rcu_stall=1"

// baseArguments returns the options of every machine whose initramfs is in dir.
func baseArguments(p places, dir string) []string {
	const data = "usr/share/"
	tools := filepath.Join(p.fetched, "tools")
	args := []string{"-L", filepath.Join(tools, data, "qemu"), "-L", filepath.Join(tools, data, "seabios"), "-L", filepath.Join(tools, "usr/lib/ipxe/qemu"),
		"-M", p.processor.machine, "-nodefaults", "-no-user-config", "-display", "none",
		"-kernel", p.image, "-initrd", filepath.Join(dir, "initramfs"), "-device", "virtio-rng-pci"}
	if p.processor.arch != runtime.GOARCH {
		return append(args, p.processor.emulation...)
	}
	return append(args, acceleratorArguments("/proc/cpuinfo", "/dev/kvm")...)
}

// qemuArguments returns QEMU's command line for a guest whose files are below dir.
func qemuArguments(p places, dir string, o Options) []string {
	// 2 GiB at most: above 4 GiB of address space the firmware places the VFs'
	// 64-bit registers where QEMU 10 maps only their low 32 bits, and igbvf fails.
	args := append(baseArguments(p, dir), "-smp", "2", "-m", "2048", "-no-reboot", "-append", p.processor.formatCommandLine(),
		"-serial", "file:"+escapeCommas(filepath.Join(dir, "console")))
	args = append(args, shareArguments(TagRoot, p.root, ",readonly=on")...)
	args = append(args, shareArguments(TagRepository, p.repository, ",readonly=on")...)
	args = append(args, shareArguments(TagShare, filepath.Join(dir, "share"), "")...)
	if p.storage != "" {
		args = append(args, shareArguments(TagStorage, p.storage, ",readonly=on")...)
	}
	if p.disk != "" { // what the guest writes is a temporary file of QEMU's, without a name
		args = append(args, "-drive", "if=virtio,format=raw,snapshot=on,file="+escapeCommas(p.disk))
	}
	for n := range 2 {
		args = append(args, cardArguments(n)...)
	}
	if o.Terminal {
		args = append(args, "-chardev", "stdio,id=terminal,signal=off", "-serial", "chardev:terminal")
	}
	return args
}
