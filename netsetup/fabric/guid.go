// SPDX-License-Identifier: Apache-2.0

package fabric

import (
	"fmt"
	"strconv"
	"strings"
)

// GUID is the port GUID of a VF.
type GUID uint64

// String returns the 16 hex digits that UFM uses.
func (g GUID) String() string { return fmt.Sprintf("%016x", uint64(g)) }

// parseGUID reads 16 hex digits, also in the forms of sysfs (0011:2233:4455:6677) and ip(8)
// (00:11:22:...). It rejects all zeros and all ones.
func parseGUID(s string) (GUID, error) {
	digits := strings.TrimPrefix(strings.ReplaceAll(s, ":", ""), "0x")
	n, err := strconv.ParseUint(digits, 16, 64)
	g := GUID(n)
	if err != nil || len(digits) != 16 || !g.isValid() {
		return 0, fmt.Errorf("%.40q is not a GUID: write 16 hex digits, not all zero or f", s)
	}
	return g, nil
}

func (g GUID) isValid() bool { return g != 0 && g != 1<<64-1 }

// IsDefault reports whether a partition is the default one, which has every GUID as a member
// and needs no call.
func IsDefault(pkey uint16) bool { return pkey == 0 || pkey == 0x7fff }

// checkCall rejects partitions and GUIDs that must not be sent to UFM.
func checkCall(pkey uint16, guids []GUID) error {
	if pkey < 1 || pkey > 0x7fff {
		return fmt.Errorf("0x%04X is not a partition: write 0x0001 to 0x7FFE, without the membership bit 0x8000", pkey)
	}
	for _, g := range guids {
		if !g.isValid() {
			return fmt.Errorf("%s is not a GUID: the VF has none; run: gojail vf apply", g)
		}
	}
	return nil
}
