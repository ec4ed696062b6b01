// SPDX-License-Identifier: Apache-2.0

package contract

// NameRule says what a name is made of, for messages about one that IsName does not accept.
const NameRule = "a letter or digit, then letters, digits, '.', '_' or '-', at most 64"

// IsName reports whether name can be that of a node, of a jail, of a jail's version or of a label of rails. None of them is
// a path: names begin with no dot and contain no slash.
func IsName(name string) bool {
	if name == "" || len(name) > NameMax {
		return false
	}
	for i, c := range []byte(name) {
		letter := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
		if !letter && (i == 0 || c != '.' && c != '_' && c != '-') {
			return false
		}
	}
	return true
}
