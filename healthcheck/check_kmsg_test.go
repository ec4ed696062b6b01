// SPDX-License-Identifier: Apache-2.0

package healthcheck

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestParseRecord(t *testing.T) {
	l, ok := parseRecord("6,12,3400000,-;text; with one\n DEVICE=+pci\n")
	assert.True(t, ok)
	assert.Equal(t, kernelLine{12, 3400 * time.Millisecond, "text; with one"}, l)
	_, ok = parseRecord("14,12,34,-;a program's own words")
	assert.False(t, ok)
}

// The machine's own log, if it may be read: the way of the real device.
func TestKernelLogOfTheMachine(t *testing.T) {
	lines, err := readKernelLog("/dev/kmsg")
	if err != nil {
		t.Skip(err)
	}
	for i := 1; i < len(lines); i++ {
		assert.LessOrEqual(t, lines[0].Since, lines[i].Since)
		assert.Less(t, lines[i-1].Record, lines[i].Record)
	}
	// What one way of reading has, the other has, too; the log goes on meanwhile.
	if theWholeLog() != nil && len(lines) > 2 {
		assert.True(t, mayHave("/dev/kmsg", "no such word", lines[len(lines)/2].Text), lines[len(lines)/2].Text)
		assert.False(t, mayHave("/dev/kmsg", "no such word in any log \x00"))
	}
}

// Each line that is a sign has the word that it is looked for by.
func TestWordsOfSigns(t *testing.T) {
	for _, name := range []string{"kmsg-bad", "xid-bad"} {
		text, err := os.ReadFile("testdata/" + name)
		require.NoError(t, err)
		for _, l := range splitRecords(string(text)) {
			for _, sign := range signs {
				if sign.line().MatchString(l.Text) {
					assert.Contains(t, l.Text, sign.word)
				}
			}
			if gpu, _, _ := judgeXID(l.Text); gpu != "" {
				assert.Regexp(t, "Xid|fallen off the bus", l.Text)
			}
		}
	}
}

func TestKernelLog(t *testing.T) {
	h, s := testHost(t), DefaultSettings()
	fixture(t, "kmsg-good", h.Roots.Kmsg)
	expect(t, once(h, kernelLog, s), OK, "")
	fixture(t, "kmsg-garbled", h.Roots.Kmsg)
	expect(t, once(h, kernelLog, s), Unknown, "")
	put(t, h.Roots.Kmsg, "3,1,1,-;critical medium error, dev sr0, sector 1\n3,1,1,-;XFS (loop3): Log I/O Error Detected. Shutting down filesystem\n")
	expect(t, once(h, kernelLog, s), OK, "")
	fixture(t, "kmsg-bad", h.Roots.Kmsg)
	f := once(h, kernelLog, s)
	fixture(t, "kmsg-good", h.Roots.Kmsg) // overwritten since
	assert.Equal(t, f.Text, again(h, kernelLog, s, f).Text)
	h.Kept = nil
	text, err := os.ReadFile("testdata/kmsg-bad")
	require.NoError(t, err)
	first, rest, _ := strings.Cut(string(text), "\n")
	for want, verdict := range map[string]Verdict{
		"medium errors on sdb": Fail, "I/O errors on sdc": Warn, "I/O errors on dm-3": Warn,
		"a file system became read-only after errors: sdd1": Fail, "the kernel gave up on nvme1": Fail,
		"tasks hang in the kernel": Warn, "machine check exceptions": Warn, "the node ran out of memory": Warn,
		"a hot transceiver in 0000:86:00.0": Warn, "timeouts of nvme2": Warn, "no path to nvme3n1": Warn,
		"a file system reaches beyond the end of its device": Warn, "a superblock cannot be written: sde1": Fail, "too many disks failed in md7": Fail,
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
	h, s := testHost(t), DefaultSettings()
	put(t, h.Roots.Kmsg, "6,1,1,-;Linux version\n")
	expect(t, once(h, xid, s), NotApplicable, "")
	fixture(t, "kmsg-good", h.Roots.Kmsg)
	expect(t, once(h, xid, s), OK, "")
	fixture(t, "xid-bad", h.Roots.Kmsg)
	f := once(h, xid, s)
	expect(t, f, Fail, "GPU 0000:9b:00 has fallen off the bus; SXid 20034 on NVSwitch 0000:c4:00; XID 149 on GPU 0000:5b:00; and more")
	for _, warning := range []string{"XID 63 on GPU 0000:3b:00", "XID 145 on GPU 0018:01:00", "SXid 12028 on NVSwitch 0000:c1:00"} {
		assert.Contains(t, f.Detail, warning)
	}
	// The log may be overwritten since.
	fixture(t, "kmsg-good", h.Roots.Kmsg)
	assert.Equal(t, f.Text, again(h, xid, s, f).Text)
	put(t, h.Roots.Kmsg, "")
	assert.Equal(t, f.Text, again(h, xid, s, f).Text)
}

func TestXIDOneByOne(t *testing.T) {
	for row, verdict := range map[string]Verdict{
		"NVRM: Xid (PCI:0000:1b:00): 48, pid=1, DBE (double bit error)":                                                    Fail,
		"NVRM: Xid (0000:1b:00): 119, pid=1, Timeout waiting for RPC":                                                      Fail,
		"NVRM: Xid (PCI:0000:1b:00): 94, Contained: SM":                                                                    Warn,
		"NVRM: Xid (PCI:0000:1b:00): 43, pid=1, name=Fatal , x":                                                            OK,
		"NVRM: Xid (PCI:0000:1b:00): 154, GPU recovery action changed from 0x0 (None) to 0x2 (Node Reboot Required)":       Fail,
		"NVRM: Xid (PCI:0000:1b:00): 154, GPU recovery action changed from 0x1 (GPU Reset Required) to 0x0 (None)":         OK,
		"NVRM: Xid (PCI:0000:1b:00): 154, words of a later driver":                                                         Warn,
		"NVRM: Xid (PCI:0000:1b:00): 145, RLW_REMAP Nonfatal XC0 i0 Link 08":                                               Warn,
		"NVRM: Xid (PCI:0000:1b:00): 99999, many digits":                                                                   OK,
		"NVRM: The NVIDIA GPU 0000:1b:00.0 (PCI ID: 10de:2330) installed in this system has fallen off the bus and is not": Fail,
		"x NVRM: Xid (PCI:0000:1b:00): 79, not the driver's line":                                                          OK,
	} {
		_, _, got := judgeXID(row)
		assert.Equal(t, verdict.String(), got.String(), row)
	}
}

func TestXIDOverriddenAndForgotten(t *testing.T) {
	h, s := testHost(t), DefaultSettings()
	put(t, h.Roots.Kmsg, "4,1,1,-;NVRM: Xid (PCI:0000:1b:00): 79, x\n4,2,2,-;NVRM: Xid (PCI:0000:3b:00): 13, x\n")
	f := once(h, xid, s)
	expect(t, f, Fail, "XID 79 on GPU 0000:1b:00")
	s.XID = map[string]string{"79": "warn", "13": "drain"}
	expect(t, again(h, xid, s, f), Fail, "XID 13 on GPU 0000:3b:00")
	s.XID = map[string]string{"79": "ignore"}
	expect(t, again(h, xid, s, f), OK, "")
	s.XID = nil
	put(t, h.Roots.Kmsg, "4,3,3,-;NVRM: Xid (PCI:0000:1b:00): 154, GPU recovery action changed from 0x1 (GPU Reset Required) to 0x0 (None)\n")
	expect(t, again(h, xid, s, f), OK, "")
}

// What a person has mended is not seen again, though it still is in the log; what
// comes later is.
func TestForgotten(t *testing.T) {
	h, s := testHost(t), DefaultSettings()
	log := "4,1,1,-;NVRM: Xid (PCI:0000:1b:00): 79, x\n2,2,2,-;EXT4-fs (sdd1): Remounting filesystem read-only\n"
	put(t, h.Roots.Kmsg, log)
	for _, l := range []look{xid, kernelLog} {
		h.Kept = nil
		put(t, h.Roots.Kmsg, log)
		f := once(h, l, s)
		expect(t, f, Fail, "")
		forgotten, err := ForgetNow(h.Roots)
		require.NoError(t, err)
		assert.Equal(t, Forgotten{2}, forgotten)
		f.Keep, err = json.Marshal(forgotten)
		require.NoError(t, err)
		for range 2 {
			f = again(h, l, s, f)
			expect(t, f, OK, "")
		}
		put(t, h.Roots.Kmsg, log+"4,3,3,-;NVRM: Xid (PCI:0000:1b:00): 48, x\n2,4,4,-;EXT4-fs (sde1): Remounting filesystem read-only\n")
		f = again(h, l, s, f)
		expect(t, f, Fail, "")
		assert.Regexp(t, "^(XID 48 on GPU 0000:1b:00|a file system became read-only after errors: sde1)$", f.Text)
		expect(t, again(h, l, s, f), Fail, f.Text)
	}
}

func TestForgottenMemoryErrors(t *testing.T) {
	h, s := testHost(t), DefaultSettings()
	mc := h.Roots.Sys + "/devices/system/edac/mc/mc0/"
	put(t, mc+"ue_count", "1\n")
	put(t, mc+"ce_count", "10\n")
	f := once(h, edac, s)
	expect(t, f, Fail, "")
	f.Keep, _ = json.Marshal(Forgotten{1})
	for range 2 {
		f = again(h, edac, s, f)
		expect(t, f, OK, "")
	}
	put(t, mc+"ue_count", "2\n")
	expect(t, again(h, edac, s, f), Fail, "")
}
