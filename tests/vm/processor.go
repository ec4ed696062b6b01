// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"cmp"
	"fmt"
	"path/filepath"
	"runtime"
)

// processor is what differs between the guests of the architectures.
type processor struct {
	arch      string   // as GOARCH
	emulator  string   // program of tests/vm/fetch
	machine   string   // of QEMU
	emulation []string // options where this machine has another processor
	console   string   // the name of the kernel's serial lines
	kernel    string   // further words of the kernel's command line
}

// processors has them by architecture. On a busy machine an x86-64 kernel at its boot was seen to take the processor's
// counter for seven times slower than it is ("PIT calibration deviates from HPET"): its clock ran that much too fast, and
// every limit was too short. With tsc=unstable it takes the time from the HPET. There it was also seen to panic, because
// its check of the timer counts interrupts for a time that is too short ("IO-APIC + timer doesn't work").
//
// On arm64, pauth-impdef=on spares the algorithm of pointer authentication that takes an emulator much time, and
// highmem=off keeps the registers of VFs below 4 GiB, as on x86-64.
var processors = map[string]processor{
	"amd64": {arch: "amd64", emulator: "usr/bin/qemu-system-x86_64", machine: "q35", console: "ttyS",
		kernel: "tsc=unstable no_timer_check"},
	"arm64": {arch: "arm64", emulator: "usr/bin/qemu-system-aarch64", machine: "virt,highmem=off,gic-version=3",
		emulation: []string{"-accel", "tcg,thread=multi,tb-size=512", "-cpu", "max,pauth-impdef=on"}, console: "ttyAMA"},
}

// findProcessor returns the processor of an architecture, "" for this machine's, and the directory, in the
// repository, of what is made for it.
func findProcessor(arch string) (p processor, build string, err error) {
	p, known := processors[cmp.Or(arch, runtime.GOARCH)]
	if !known {
		return p, "", fmt.Errorf("vm: no guest for the processor %q: write amd64 or arm64", arch)
	}
	if p.arch != runtime.GOARCH {
		return p, filepath.Join("build", p.arch), nil
	}
	return p, "build", nil
}

func (p processor) formatCommandLine() string {
	return "console=" + p.console + "0 " + commandLine + " " + p.kernel
}

// findBuilt returns the directory of gojail as built for a release: for another processor one build serves all of them.
func (p places) findBuilt(release string) string {
	if p.processor.arch != runtime.GOARCH {
		return p.build
	}
	return filepath.Join(p.build, "releases", release)
}

// FindSerialLines returns the kernel's name of its serial lines on a processor such as this one.
func FindSerialLines() string { return processors[runtime.GOARCH].console }
