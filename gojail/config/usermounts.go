// SPDX-License-Identifier: Apache-2.0

package config

// String is the mount as it was written, without the default ":rw".
func (m UserMount) String() string {
	text := m.Source + ":" + m.Destination
	if m.Readonly {
		text += ":ro"
	}
	return text
}
