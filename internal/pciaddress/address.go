// SPDX-License-Identifier: Apache-2.0

// Package pciaddress reads PCI addresses, which identify the devices of a node.
package pciaddress

import (
	"regexp"
	"strings"
)

// address matches a PCI address. Its domain has four digits or more: that of Intel's VMD starts at 0x10000, and
// NVIDIA's driver prints eight digits.
var address = regexp.MustCompile(`^([0-9a-f]{4,8}):([0-9a-f]{2}:[01][0-9a-f]\.[0-7])$`)

// Parse returns a PCI address with its domain, in the form of /sys/bus/pci/devices: lower case, and at least four
// digits of the domain, without further leading zeros ("%04x:%02x:%02x.%d" in drivers/pci/probe.c). It reports whether
// text is an address.
func Parse(text string) (string, bool) {
	m := address.FindStringSubmatch(strings.ToLower(text))
	if m == nil {
		return "", false
	}
	domain := strings.TrimLeft(m[1], "0")
	return strings.Repeat("0", max(0, 4-len(domain))) + domain + ":" + m[2], true
}

// IsValid reports whether text is a PCI address in the form of /sys/bus/pci/devices.
func IsValid(text string) bool {
	parsed, ok := Parse(text)
	return ok && parsed == text
}
