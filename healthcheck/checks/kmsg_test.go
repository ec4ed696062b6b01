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
		var none seenLog
		may, _ := none.mayHave("/dev/kmsg", "", "no such word", lines[len(lines)/2].Text)
		assert.True(t, may, lines[len(lines)/2].Text)
		may, seen := none.mayHave("/dev/kmsg", "", "no such word in any log \x00")
		assert.False(t, may)
		assert.Contains(t, string(theWholeLog()), seen.Line)
		may, _ = seen.mayHave("/dev/kmsg", "", "no such word in any log \x00")
		assert.False(t, may)
	}
}

// Each line changes the mark of the real log, whoever writes it.
func TestMarkOfTheMachine(t *testing.T) {
	before := readLogMark()
	if before.Unread <= 0 {
		t.Skip("the kernel's log may not be read, or a daemon takes it from /proc/kmsg")
	}
	device, err := os.OpenFile("/dev/kmsg", os.O_WRONLY, 0)
	if err != nil {
		t.Skip(err)
	}
	defer device.Close()
	_, err = device.WriteString("<15>gojail: a test of the kernel's log\n")
	require.NoError(t, err)
	assert.NotEqual(t, before, readLogMark())
}

// fakeLog stands in for the kernel's, and counts how often all of it is read.
type fakeLog struct {
	text  string
	mark  logMark
	reads int
}

func newFakeLog(t *testing.T) *fakeLog {
	log := &fakeLog{}
	whole, newest, mark, stamped := theWholeLog, theNewestLog, theLogMark, stamps
	t.Cleanup(func() { theWholeLog, theNewestLog, theLogMark, stamps = whole, newest, mark, stamped })
	theNewestLog = func() []byte { return []byte(log.text[max(0, len(log.text)-100):]) }
	theWholeLog = func() []byte { log.reads++; return []byte(log.text) }
	theLogMark = func() logMark { return log.mark }
	stamps = func() bool { return true }
	return log
}

// write adds lines that nobody takes from /proc/kmsg.
func (log *fakeLog) write(text string) {
	log.text += text
	log.mark.Unread += len(text)
}

// What a run has seen is not looked at once more, and nothing else is left out.
func TestSeenLog(t *testing.T) {
	log := newFakeLog(t)
	var seen seenLog
	look := func(more, rules string, words ...string) (may bool) {
		log.write(more)
		may, seen = seen.mayHave("/dev/kmsg", rules, words...)
		return may
	}
	assert.False(t, look("<6>[    1.000001] one\n<6>[    2.000002] two\n", "", "bad", "worse"))
	assert.Equal(t, "<6>[    2.000002] two\n", seen.Line)
	assert.Equal(t, 1, log.reads)
	assert.False(t, look("", "", "bad", "worse"))
	assert.Equal(t, 1, log.reads, "nothing is new")
	assert.False(t, look("<6>[    3.000003] three\n<6>[    4.000004] four\n", "", "bad", "worse", "two"), "only what is new is looked at")
	assert.Equal(t, "<6>[    4.000004] four\n", seen.Line)
	assert.Equal(t, 2, log.reads)
	assert.True(t, look("", "other", "bad", "two"), "it was judged by other rules")
	own := thisProgram
	t.Cleanup(func() { thisProgram = own })
	thisProgram = func() string { return "a later version" }
	assert.True(t, look("", "other", "bad", "one"))
	assert.Equal(t, 4, log.reads)

	seen = seenLog{}
	assert.False(t, look("", "", "bad"))
	assert.True(t, look("<6>[    5.000005] bad\n<6>[    6.000006] six\n", "", "bad"))
	assert.Equal(t, "<6>[    6.000006] six\n", seen.Line)
	assert.False(t, look("", "", "bad"), "the check has judged it")
	seen = seenLog{}
	assert.True(t, look("", "", "bad"), "or has not")

	log.text, log.mark = "<6>[    7.000007] seven\n", logMark{7, 24}
	assert.False(t, look("", "", "bad"), "what it had seen was overwritten")
	assert.False(t, look("<6>[    8.000008] eight\n", "", "bad", "seven"))
	forged := "<6>[   12.000012] x: " + seen.Line
	assert.True(t, look("<6>[   11.000011] worse\n"+forged, "", "worse"), "a user wrote the line again")
	stamps = func() bool { return false }
	seen = seenLog{}
	assert.False(t, look("<6>one\n", "", "no"))
	assert.True(t, look("<6>no\n<6>one\n", "", "no"), "without stamps")
	theWholeLog = func() []byte { return nil }
	log.mark = logMark{}
	assert.True(t, look("", "", "bad"), "no log")
	assert.Empty(t, seen)
}

// The mark is believed only as long as a new line must change it.
func TestMarkOfTheLog(t *testing.T) {
	log := newFakeLog(t)
	var seen seenLog
	look := func(words ...string) (may bool) {
		may, seen = seen.mayHave("/dev/kmsg", "", words...)
		return may
	}
	log.write("<6>[    1.000001] one\n")
	log.mark.Unread = 0 // a daemon takes all lines from /proc/kmsg
	assert.False(t, look("bad"))
	log.text += "<6>[    2.000002] bad\n"
	assert.True(t, look("bad"), "the mark is the same")
	log.text += strings.Repeat("<6>[    2.000003] again\n", 3)
	assert.False(t, look("bad"))
	assert.Equal(t, 1, log.reads, "the newest lines have the last that was seen")
	for i := range 5 {
		log.text += fmt.Sprintf("<6>[    2.00001%d] bad\n", i)
	}
	assert.True(t, look("bad"))
	assert.Equal(t, 2, log.reads, "they do not")
	log.mark.Unread = len(log.text)
	assert.False(t, look("bad"))
	assert.NotEmpty(t, seen.Mark)
	log.text += "<6>[    3.000003] bad\n"
	log.mark.Oldest++
	assert.True(t, look("bad"), "a line came, another of its length went")
	log.mark.Unread = len(log.text)
	assert.False(t, look("bad"))

	log.text = "<6>[    4.000004] four\n" // dmesg --clear: the device still has the others
	log.mark.Unread += len(log.text)
	assert.True(t, look("bad"), "what was cleared was perhaps not seen")
	reads := log.reads
	assert.False(t, look("bad"), "the check has read the device")
	assert.Equal(t, reads+1, log.reads)
	log.mark = logMark{} // that cannot be told
	assert.False(t, look("bad"))
	assert.Empty(t, seen.Mark)
}

// What a check says of the log does not depend on what it has seen of it.
func TestSeenLogOfChecks(t *testing.T) {
	log := newFakeLog(t)
	t.Cleanup(func() { delete(kernelLogOf, "/dev/kmsg") })
	h, s := testHost(t), config.DefaultSettings()
	h.Roots.Kmsg = "/dev/kmsg"
	write := func(text string) {
		l := kernelLine{int64(len(log.text)), time.Second, text}
		log.write("<6>[    1.000000] " + text + "\n")
		kernelLogOf["/dev/kmsg"] = append(kernelLogOf["/dev/kmsg"], l)
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
	h.Kept = nil
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
	// The log may be overwritten since.
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
		"x NVRM: Xid (PCI:0000:1b:00): 79, not the driver's line":                                                          check.OK,
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

// What a person has mended is not seen again, though it still is in the log; what
// comes later is.
func TestForgotten(t *testing.T) {
	h, s := testHost(t), config.DefaultSettings()
	log := "4,1,1,-;NVRM: Xid (PCI:0000:1b:00): 79, x\n2,2,2,-;EXT4-fs (sdd1): Remounting filesystem read-only\n"
	put(t, h.Roots.Kmsg, log)
	for _, l := range []look{xid, kernelLog} {
		h.Kept = nil
		put(t, h.Roots.Kmsg, log)
		f := once(h, l, s)
		expect(t, f, check.Fail, "")
		forgotten, err := ForgetNow(h.Roots)
		require.NoError(t, err)
		assert.Equal(t, check.Forgotten{Record: 2}, forgotten)
		f.Keep, err = json.Marshal(forgotten)
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
	f.Keep, _ = json.Marshal(check.Forgotten{Record: 1})
	for range 2 {
		f = again(h, edac, s, f)
		expect(t, f, check.OK, "")
	}
	put(t, mc+"ue_count", "2\n")
	expect(t, again(h, edac, s, f), check.Fail, "")
}
