// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/gojail/gojail/healthcheck/check"
	"github.com/gojail/gojail/healthcheck/config"
)

// Messages in one record, in several, cut, and with other messages between: what a check says of each log.
func TestMessagesOfSeveralRecords(t *testing.T) {
	h := testHost(t)
	for file, read := range map[string]checkFunc{"kmsg-messages": xid, "kmsg-messages-signs": kernelLog} {
		name, want, log := "", "", ""
		judge := func() {
			put(t, h.Roots.Kmsg, log)
			f := once(h, read, config.DefaultSettings())
			if want == "none" {
				assert.NotContains(t, []check.Verdict{check.Fail, check.Warn}, f.Verdict, "%s: %s", name, f.Text)
			} else if name != "" {
				assert.Equal(t, want, f.Verdict.String()+": "+f.Text, name)
			}
		}
		for _, row := range readRows(t, file) {
			if head, found := strings.CutPrefix(row, "== "); found {
				judge()
				log = ""
				name, want, _ = strings.Cut(head, ": ")
			} else {
				log += row + "\n"
			}
		}
		judge()
	}
}

// FuzzKernelLog: whatever the log has, a message is one line, begins as a record does, and its finding can be printed.
func FuzzKernelLog(f *testing.F) {
	for _, seed := range []string{
		`4,1,1,c;NVRM: The NVIDIA GPU 0000:b3:00.0\x0aNVRM: (PCI ID: 10de:26b5) installed in this system has\x0aNVRM: fallen`,
		"4,1,1,c,caller=T7;NVRM: The NVIDIA GPU 0000:a3:00.0\n4,2,1,+,caller=T7;NVRM: fallen off the bus",
		"4,1,1,-;NVRM: Xid (PCI:0000:b3:00 GPU-I:05): \n KEY=x\n4,3,2,c;79, pid=1, ",
		"2,1,1,-;EXT4-fs (sdd1): \n2,2,2,c;Remounting filesystem read-only",
		"4,8,16,-;nvidia-nvswitch0: SXid (PCI:0000:c4:00.0): 20034, Fatal, Link 30 LTSSM Fault Up",
		"4,2,2,c;NVRM: Xid (PCI:0000:b3:00): 154, GPU recovery action changed from 0x1 (GPU Reset Required) to 0x0 (None)",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var begins []string
		for row := range strings.Lines(text) {
			if r, ok := parseRecord(row); ok {
				begins = append(begins, formatRecordText(r.Text))
			}
		}
		seen := map[string]check.Verdict{}
		for _, l := range parseRecords(text) {
			begun := false
			for _, start := range begins {
				begun = begun || strings.HasPrefix(l.Text, start)
			}
			if !begun || strings.Contains(l.Text, "\n") {
				t.Fatalf("%q", l.Text)
			}
			rememberXID(seen, l.Text, map[string]string{"13": "drain"})
			judged(l.Text)
		}
		for stable := range seen {
			if formatLine(stable) != stable {
				t.Fatalf("%q", stable)
			}
		}
	})
}
