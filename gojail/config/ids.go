// SPDX-License-Identifier: Apache-2.0

package config

import "strconv"

// ParseID parses a user or group number.
func ParseID(text string) (uint32, error) {
	n, err := strconv.ParseUint(text, 10, 32)
	return uint32(n), err
}
