// SPDX-License-Identifier: Apache-2.0

package pool

import (
	"fmt"
	"net"
	"net/netip"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// All information in the directory is in the names of files, because a name appears
// completely or not at all, and needs no new inode: the files are hard links of one empty
// file per node. The parts of a name are separated by commas, which no part contains. A
// name that is not exactly what gojail would write is not gojail's.

var vfRule = regexp.MustCompile(`^[0-9A-Za-z][0-9A-Za-z.:_-]*$`)

var wordRule = regexp.MustCompile(`^[0-9A-Za-z_+-][0-9A-Za-z._+-]*$`)

// nameMax is the NAME_MAX of all supported file systems.
const nameMax = 255

// formatLeaseName returns the name of a lease in its address's directory.
func formatLeaseName(l Lease) string {
	return strings.Join([]string{l.Cluster, l.Job, l.Node, l.Rail, formatVF(l.VF), formatTime(l.Time)}, ",")
}

func parseLeaseName(addr netip.Addr, name string) (Lease, bool) {
	f := strings.Split(name, ",")
	if len(f) != 6 {
		return Lease{}, false
	}
	at, ok := parseTime(f[5])
	l := Lease{Owner{f[0], f[1], f[2], f[3]}, addr, strings.TrimPrefix(f[4], "-"), at}
	return l, ok && l.check() == nil && formatLeaseName(l) == name
}

// formatRecordName returns the name of a lease in its node's directory.
func formatRecordName(l Lease) string {
	return strings.Join([]string{l.Cluster, l.Job, l.Rail, l.Addr.String(), formatVF(l.VF), formatTime(l.Time)}, ",")
}

func parseRecordName(node, name string) (Lease, bool) {
	f := strings.Split(name, ",")
	if len(f) != 6 {
		return Lease{}, false
	}
	addr, addrOK := parseAddr(f[3])
	at, timeOK := parseTime(f[5])
	l := Lease{Owner{f[0], f[1], node, f[2]}, addr, strings.TrimPrefix(f[4], "-"), at}
	return l, addrOK && timeOK && l.check() == nil && formatRecordName(l) == name
}

// check rejects a lease with a part that cannot be in a file name.
func (l Lease) check() error {
	if err := l.Owner.check(); err != nil {
		return err
	}
	if l.VF != "" && (len(l.VF) > 32 || !vfRule.MatchString(l.VF)) {
		return fmt.Errorf("%q is not the PCI address of a VF", l.VF)
	}
	if len(formatLeaseName(l)) > nameMax || len(formatRecordName(l)) > nameMax {
		return fmt.Errorf("%s: the names are too long for the file name of a lease", l.Owner)
	}
	return nil
}

func (o Owner) check() error {
	for _, part := range []string{o.Cluster, o.Job, o.Node, o.Rail} {
		if !isWord(part) {
			return fmt.Errorf(
				"%q cannot own an address: cluster, job, node and rail are up to 64 letters, digits and ._+-", part)
		}
	}
	return nil
}

// isWord reports whether s can be a part of a name: letters, digits and ._+- only, no
// leading dot, 1 to 64 bytes.
func isWord(s string) bool { return len(s) <= 64 && wordRule.MatchString(s) }

// formatVF returns the VF's address, or a dash for an interface without a VF.
func formatVF(vf string) string {
	if vf == "" {
		return "-"
	}
	return vf
}

func formatTime(t time.Time) string { return strconv.FormatInt(t.Unix(), 10) }

// parseTime reads seconds since 1970, as formatTime writes them.
func parseTime(s string) (time.Time, bool) {
	n, err := strconv.ParseInt(s, 10, 64)
	at := time.Unix(n, 0)
	return at, err == nil && n > 0 && n < 1<<40 && formatTime(at) == s
}

func parseAddr(s string) (netip.Addr, bool) {
	a, err := netip.ParseAddr(s)
	return a, err == nil && a.Zone() == "" && a.String() == s
}

// formatMarkName returns the name of a quarantine's mark. The mark lies in the address's directory, so that the address
// is not free. The list of quarantines has it once more, with the address in place of the first part.
func formatMarkName(q Quarantined) string {
	return strings.Join([]string{"quarantine", formatTime(q.Time), q.MAC.String(), q.Node}, ",")
}

func isMark(name string) bool { return strings.HasPrefix(name, "quarantine,") }

func formatQuarantineName(q Quarantined) string {
	return q.Addr.String() + strings.TrimPrefix(formatMarkName(q), "quarantine")
}

func parseQuarantine(name string) (Quarantined, bool) {
	f := strings.Split(name, ",")
	if len(f) != 4 || !isWord(f[3]) {
		return Quarantined{}, false
	}
	addr, addrOK := parseAddr(f[0])
	at, timeOK := parseTime(f[1])
	mac, err := net.ParseMAC(f[2])
	q := Quarantined{Addr: addr, MAC: mac, Node: f[3], Time: at}
	return q, addrOK && timeOK && err == nil && formatQuarantineName(q) == name
}
