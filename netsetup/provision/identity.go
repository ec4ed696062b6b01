// SPDX-License-Identifier: Apache-2.0

package provision

import (
	"crypto/sha256"
	"fmt"
	"net"
)

// DeriveMAC returns the MAC of a VF: locally administered, the same at each boot, and
// different for each node, PF and VF.
func DeriveMAC(node, pf string, number int) net.HardwareAddr {
	mac := net.HardwareAddr(computeDigest(node, pf, number)[:6])
	mac[0] = mac[0]&^0x01 | 0x02 // an individual address, not a manufacturer's (IEEE 802, 8.2)
	return mac
}

// deriveGUID returns the node and port GUID of an InfiniBand VF, derived like the MAC: eight
// bytes.
func deriveGUID(node, pf string, number int) net.HardwareAddr {
	guid := net.HardwareAddr(computeDigest(node, pf, number)[:8])
	guid[0] = guid[0]&^0x01 | 0x02
	return guid
}

func computeDigest(node, pf string, number int) []byte {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %s %d", node, pf, number))
	return sum[:]
}
