// SPDX-License-Identifier: Apache-2.0

package nhc

import (
	"fmt"
	"strings"
)

// option is "-t ext4", or a letter without a value.
type option struct {
	letter byte
	value  string
}

// parseOptions splits arguments as bash's getopts does: letters are the supported options, each
// followed by ":" if it takes a value.
func parseOptions(args []string, letters string) (all []option, rest []string, err error) {
	for len(args) > 0 {
		word := args[0]
		if len(word) < 2 || word[0] != '-' {
			break
		}
		args = args[1:]
		if word == "--" {
			break
		}
		for i := 1; i < len(word); i++ {
			at := strings.IndexByte(letters, word[i])
			if at < 0 || word[i] == ':' {
				return nil, nil, fmt.Errorf("unknown option -%c", word[i])
			}
			o := option{letter: word[i]}
			if at+1 < len(letters) && letters[at+1] == ':' {
				if o.value = word[i+1:]; o.value == "" {
					if len(args) == 0 {
						return nil, nil, fmt.Errorf("the option -%c requires a value", word[i])
					}
					o.value, args = args[0], args[1:]
				}
				i = len(word)
			}
			all = append(all, o)
		}
	}
	return all, args, nil
}
