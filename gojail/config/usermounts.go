// SPDX-License-Identifier: Apache-2.0

package config

// String returns the mount as the user wrote it, without the default ":rw".
func (m UserMount) String() string {
	text := m.Source + ":" + m.Destination
	if m.Readonly {
		text += ":ro"
	}
	return text
}
