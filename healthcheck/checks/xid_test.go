// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/healthcheck/check"
	"github.com/gojail/gojail/healthcheck/config"
)

// readRows returns the lines of a file of testdata that are no comments.
func readRows(t *testing.T, name string) (rows []string) {
	text, err := os.ReadFile("testdata/" + name)
	require.NoError(t, err)
	for row := range strings.Lines(string(text)) {
		if !strings.HasPrefix(row, "#") {
			rows = append(rows, strings.TrimSuffix(row, "\n"))
		}
	}
	return rows
}

// Each form of a line is read, with each kind of number, with the built-in policy and with each of health.toml.
func TestXIDForms(t *testing.T) {
	h, s := testHost(t), config.DefaultSettings()
	numbers := map[string]check.Verdict{"79": check.Fail, "94": check.Warn, "13": check.OK, "999": check.OK}
	policies := map[string]check.Verdict{"": 0, "drain": check.Fail, "warn": check.Warn, "ignore": check.OK}
	for _, row := range readRows(t, "xid-forms") {
		gpu, form, _ := strings.Cut(row, " ")
		for number, builtin := range numbers {
			for policy, want := range policies {
				if policy == "" {
					want = builtin
				}
				put(t, h.Roots.Kmsg, "4,1,1,c;"+strings.ReplaceAll(form, "NUMBER", number)+"\n")
				s.XID = map[string]string{number: policy}
				f := once(h, xid, s)
				switch {
				case gpu == "-":
					assert.NotContains(t, []check.Verdict{check.Fail, check.Warn}, f.Verdict, "%s: %s", row, f.Text)
				case want == check.OK:
					expect(t, f, check.OK, "no relevant XID")
				default:
					expect(t, f, want, fmt.Sprintf("XID %s on GPU %s", number, gpu))
				}
			}
		}
	}
}

// Events of switches, and of GPUs without an XID.
func TestGPUEvents(t *testing.T) {
	want := ""
	for _, row := range readRows(t, "gpu-events") {
		if verdict, found := strings.CutPrefix(row, "== "); found {
			want = verdict
			continue
		}
		_, stable, verdict := judgeXID(formatRecordText(row))
		assert.Equal(t, want, strings.TrimSpace(verdict.String()+" "+stable), row)
	}
}

// A harmless event that follows a fatal one of the same number does not hide it, in one run and in the next.
func TestXIDKeepsTheWorst(t *testing.T) {
	const fatal = "4,1,1,c;NVRM: Xid (PCI:0018:01:00): 149, NETIR_LINK_EVT Fatal XC0 i0 Link 08 (0x004505c6)\n" +
		"4,2,2,-;nvidia-nvswitch0: SXid (PCI:0000:a9:00.0): 20034, Fatal, Link 30 LTSSM Fault Up\n"
	const harmless = "4,3,3,c;NVRM: Xid (PCI:0018:01:00): 149, NETIR_BER_EVENT Nonfatal XC0 i0 Link 01 (0x00082226)\n" +
		"4,4,4,-;nvidia-nvswitch0: SXid (PCI:0000:a9:00.0): 20034, Data {0x50610002}\n"
	h, s := testHost(t), config.DefaultSettings()
	put(t, h.Roots.Kmsg, fatal+harmless)
	f := once(h, xid, s)
	expect(t, f, check.Fail, "SXid 20034 on NVSwitch 0000:a9:00; XID 149 on GPU 0018:01:00")
	put(t, h.Roots.Kmsg, harmless)
	expect(t, again(h, xid, s, f), check.Fail, "SXid 20034 on NVSwitch 0000:a9:00; XID 149 on GPU 0018:01:00")
}
