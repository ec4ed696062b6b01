// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/healthcheck/check"
	"github.com/gojail/gojail/healthcheck/config"
)

func TestParseRecord(t *testing.T) {
	l, ok := parseRecord("6,12,3400000,-;text; with one\n DEVICE=+pci\n")
	assert.True(t, ok)
	assert.Equal(t, kernelRecord{kernelLine: kernelLine{12, 3400 * time.Millisecond, "text; with one"}, Level: 6}, l)
	l, ok = parseRecord("4,13,5,c,caller=T12,more=1;text")
	assert.True(t, ok)
	assert.Equal(t, kernelRecord{kernelLine{13, 5 * time.Microsecond, "text"}, 4, "T12", true}, l)
	_, ok = parseRecord("14,12,34,-;a program's own words")
	assert.False(t, ok)
}

// The machine's own log, if it is readable: the path of the real device.
func TestKernelLogOfTheMachine(t *testing.T) {
	lines, err := readKernelLog("/dev/kmsg")
	if err != nil {
		t.Skip(err)
	}
	for i := 1; i < len(lines); i++ {
		assert.LessOrEqual(t, lines[0].Since, lines[i].Since)
		assert.LessOrEqual(t, lines[i-1].Record, lines[i].Record)
	}
}

// A check that reads a growing log again reports the same earlier errors.
func TestAGrowingLog(t *testing.T) {
	h, s := testHost(t), config.DefaultSettings()
	log := ""
	write := func(text string) {
		log += fmt.Sprintf("6,%d,1,-;%s\n", len(log)+1, text)
		put(t, h.Roots.Kmsg, log)
	}
	for range 2 {
		write("Linux version")
	}
	f, g := once(h, kernelLog, s), once(h, xid, s)
	expect(t, f, check.OK, "")
	expect(t, g, check.NotApplicable, "")
	write("NVRM: loading NVIDIA UNIX x86_64 Kernel Module")
	write("NVRM: Xid (PCI:0000:1b:00): 13, x")
	write("Out of memory: Killed process 7")
	for range 3 {
		f, g = again(h, kernelLog, s, f), again(h, xid, s, g)
		expect(t, f, check.Warn, "the node ran out of memory")
		expect(t, g, check.OK, "")
	}
	s.XID = map[string]string{"13": "drain"}
	expect(t, again(h, xid, s, g), check.Fail, "XID 13 on GPU 0000:1b:00")
	write("NVRM: Xid (PCI:0000:1b:00): 79, x")
	write("EXT4-fs (sdd1): Remounting filesystem read-only")
	s.XID = nil
	for range 3 {
		f, g = again(h, kernelLog, s, f), again(h, xid, s, g)
		expect(t, f, check.Fail, "a file system became read-only after errors: sdd1")
		expect(t, g, check.Fail, "XID 79 on GPU 0000:1b:00")
	}
}

// Each line that matches a sign has the sign's word.
func TestWordsOfSigns(t *testing.T) {
	for _, name := range []string{"kmsg-bad", "xid-bad"} {
		text, err := os.ReadFile("testdata/" + name)
		require.NoError(t, err)
		for _, l := range parseRecords(string(text)) {
			for _, sign := range signs {
				if sign.line.MatchString(l.Text) {
					assert.Contains(t, l.Text, sign.word)
				}
			}
			if gpu, _, _ := judgeXID(l.Text); gpu != "" {
				assert.Regexp(t, "NVRM|SXid", l.Text)
			}
		}
	}
}

func TestKernelLog(t *testing.T) {
	h, s := testHost(t), config.DefaultSettings()
	fixture(t, "kmsg-good", h.Roots.Kmsg)
	expect(t, once(h, kernelLog, s), check.OK, "")
	fixture(t, "kmsg-garbled", h.Roots.Kmsg)
	expect(t, once(h, kernelLog, s), check.Unknown, "")
	put(t, h.Roots.Kmsg, "3,1,1,-;critical medium error, dev sr0, sector 1\n3,1,1,-;XFS (loop3): Log I/O Error Detected. Shutting down filesystem\n")
	expect(t, once(h, kernelLog, s), check.OK, "")
	fixture(t, "kmsg-bad", h.Roots.Kmsg)
	f := once(h, kernelLog, s)
	fixture(t, "kmsg-good", h.Roots.Kmsg) // overwritten since
	assert.Equal(t, f.Text, again(h, kernelLog, s, f).Text)
	h.State = nil
	text, err := os.ReadFile("testdata/kmsg-bad")
	require.NoError(t, err)
	first, rest, _ := strings.Cut(string(text), "\n")
	for want, verdict := range map[string]check.Verdict{
		"medium errors on sdb": check.Fail, "I/O errors on sdc": check.Warn, "I/O errors on dm-3": check.Warn,
		"a file system became read-only after errors: sdd1": check.Fail, "the kernel gave up on nvme1": check.Fail,
		"tasks hang in the kernel": check.Warn, "machine check exceptions": check.Warn, "the node ran out of memory": check.Warn,
		"a hot transceiver in 0000:86:00.0": check.Warn, "timeouts of nvme2": check.Warn, "no path to nvme3n1": check.Warn,
		"a file system reaches beyond the end of its device": check.Warn, "a superblock cannot be written: sde1": check.Fail, "too many disks failed in md7": check.Fail,
	} {
		found := false
		for row := range strings.Lines(rest) {
			put(t, h.Roots.Kmsg, first+"\n"+row)
			if f := once(h, kernelLog, s); f.Text == want {
				assert.Equal(t, verdict, f.Verdict, want)
				found = true
			}
		}
		assert.True(t, found, want)
	}
}

func TestXID(t *testing.T) {
	h, s := testHost(t), config.DefaultSettings()
	put(t, h.Roots.Kmsg, "6,1,1,-;Linux version\n")
	expect(t, once(h, xid, s), check.NotApplicable, "")
	fixture(t, "kmsg-good", h.Roots.Kmsg)
	expect(t, once(h, xid, s), check.OK, "")
	fixture(t, "xid-bad", h.Roots.Kmsg)
	f := once(h, xid, s)
	expect(t, f, check.Fail, "GPU 0000:9b:00 has fallen off the bus; SXid 20034 on NVSwitch 0000:c4:00; XID 149 on GPU 0000:5b:00; and more")
	for _, warning := range []string{"XID 63 on GPU 0000:3b:00", "XID 145 on GPU 0018:01:00", "SXid 12028 on NVSwitch 0000:c1:00"} {
		assert.Contains(t, f.Detail, warning)
	}
	// The log may have been overwritten.
	fixture(t, "kmsg-good", h.Roots.Kmsg)
	assert.Equal(t, f.Text, again(h, xid, s, f).Text)
	put(t, h.Roots.Kmsg, "")
	assert.Equal(t, f.Text, again(h, xid, s, f).Text)
}

func TestXIDOneByOne(t *testing.T) {
	for row, verdict := range map[string]check.Verdict{
		"NVRM: Xid (PCI:0000:1b:00): 48, pid=1, DBE (double bit error)":                                                    check.Fail,
		"NVRM: Xid (0000:1b:00): 119, pid=1, Timeout waiting for RPC":                                                      check.Fail,
		"NVRM: Xid (PCI:0000:1b:00): 94, Contained: SM":                                                                    check.Warn,
		"NVRM: Xid (PCI:0000:1b:00): 43, pid=1, name=Fatal , x":                                                            check.OK,
		"NVRM: Xid (PCI:0000:1b:00): 154, GPU recovery action changed from 0x0 (None) to 0x2 (Node Reboot Required)":       check.Fail,
		"NVRM: Xid (PCI:0000:1b:00): 154, GPU recovery action changed from 0x1 (GPU Reset Required) to 0x0 (None)":         check.OK,
		"NVRM: Xid (PCI:0000:1b:00): 154, words of a later driver":                                                         check.Warn,
		"NVRM: Xid (PCI:0000:1b:00): 145, RLW_REMAP Nonfatal XC0 i0 Link 08":                                               check.Warn,
		"NVRM: Xid (PCI:0000:1b:00): 99999, many digits":                                                                   check.OK,
		"NVRM: The NVIDIA GPU 0000:1b:00.0 (PCI ID: 10de:2330) installed in this system has fallen off the bus and is not": check.Fail,
		// The driver's own word counts, not that of a preceding process name.
		"NVRM: Xid (PCI:0000:1b:00): 79, pid=1, name=IN= OUT= SRC=1., GPU has fallen off the bus.":                                          check.Fail,
		"NVRM: Xid (PCI:0000:1b:00): 79, pid=1, name=IN= OUT= MACSRC, GPU has fallen off the bus.":                                          check.Fail,
		"NVRM: Xid (PCI:0000:1b:00): 145, pid=1, name=x Fatal y, RLW_REMAP Nonfatal XC0 i0 Link 08":                                         check.Warn,
		"NVRM: Xid (PCI:0000:1b:00): 145, pid=1, name=x Nonfatal y, RLW_REMAP Fatal XC0 i0 Link 08":                                         check.Fail,
		"NVRM: Xid (PCI:0000:1b:00): 145, RLW_REMAP Nonfatal XC0 i0 Link 08 (0x1), A Fatal x":                                               check.Warn,
		"NVRM: Xid (PCI:0000:1b:00): 145, pid=1, name=, A Fatal XC0 i, RLW_REMAP  Nonfatal   XC0 i0 Link -1 (0x1)":                          check.Warn,
		"NVRM: Xid (PCI:0000:1b:00): 145, pid=1, name=, A Fatal XC0 i, words of a later driver, Nonfatal x":                                 check.Warn,
		"NVRM: Xid (PCI:0000:1b:00): 154, pid=1, name=a to b, GPU recovery action changed from 0x1 (GPU Reset Required) to 0x0 (None)":      check.OK,
		"NVRM: Xid (PCI:0000:1b:00): 154, pid=1, name=(None) to x, GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)": check.Fail,
		"x NVRM: Xid (PCI:0000:1b:00): 79, not the driver's line":                                                                           check.OK,
	} {
		_, _, got := judgeXID(row)
		assert.Equal(t, verdict.String(), got.String(), row)
	}
}

func TestXIDOverriddenAndForgotten(t *testing.T) {
	h, s := testHost(t), config.DefaultSettings()
	put(t, h.Roots.Kmsg, "4,1,1,-;NVRM: Xid (PCI:0000:1b:00): 79, x\n4,2,2,-;NVRM: Xid (PCI:0000:3b:00): 13, x\n")
	f := once(h, xid, s)
	expect(t, f, check.Fail, "XID 79 on GPU 0000:1b:00")
	s.XID = map[string]string{"79": "warn", "13": "drain"}
	expect(t, again(h, xid, s, f), check.Fail, "XID 13 on GPU 0000:3b:00")
	s.XID = map[string]string{"79": "ignore"}
	expect(t, again(h, xid, s, f), check.OK, "")
	s.XID = nil
	put(t, h.Roots.Kmsg, "4,3,3,-;NVRM: Xid (PCI:0000:1b:00): 154, GPU recovery action changed from 0x1 (GPU Reset Required) to 0x0 (None)\n")
	expect(t, again(h, xid, s, f), check.OK, "")
}

// A fault that was cleared with forget is not reported again, even though the log still has it;
// a later one is.
func TestForgotten(t *testing.T) {
	h, s := testHost(t), config.DefaultSettings()
	log := "4,1,1,-;NVRM: Xid (PCI:0000:1b:00): 79, x\n2,2,2,-;EXT4-fs (sdd1): Remounting filesystem read-only\n"
	put(t, h.Roots.Kmsg, log)
	for _, l := range []checkFunc{xid, kernelLog} {
		h.State = nil
		put(t, h.Roots.Kmsg, log)
		f := once(h, l, s)
		expect(t, f, check.Fail, "")
		forgotten, err := ReadForgotten(h.Roots)
		require.NoError(t, err)
		assert.Equal(t, check.Forgotten{Record: 2}, forgotten)
		f.State, err = json.Marshal(forgotten)
		require.NoError(t, err)
		for range 2 {
			f = again(h, l, s, f)
			expect(t, f, check.OK, "")
		}
		put(t, h.Roots.Kmsg, log+"4,3,3,-;NVRM: Xid (PCI:0000:1b:00): 48, x\n2,4,4,-;EXT4-fs (sde1): Remounting filesystem read-only\n")
		f = again(h, l, s, f)
		expect(t, f, check.Fail, "")
		assert.Regexp(t, "^(XID 48 on GPU 0000:1b:00|a file system became read-only after errors: sde1)$", f.Text)
		expect(t, again(h, l, s, f), check.Fail, f.Text)
	}
}

func TestForgottenMemoryErrors(t *testing.T) {
	h, s := testHost(t), config.DefaultSettings()
	mc := h.Roots.Sys + "/devices/system/edac/mc/mc0/"
	put(t, mc+"ue_count", "1\n")
	put(t, mc+"ce_count", "10\n")
	f := once(h, edac, s)
	expect(t, f, check.Fail, "")
	f.State, _ = json.Marshal(check.Forgotten{Record: 1})
	for range 2 {
		f = again(h, edac, s, f)
		expect(t, f, check.OK, "")
	}
	put(t, mc+"ue_count", "2\n")
	expect(t, again(h, edac, s, f), check.Fail, "")
}
