// SPDX-License-Identifier: Apache-2.0

// Package expression has regular expressions that are compiled when they are first
// used. A command of ours starts for each job and each health check, and uses few of
// the expressions that it has: to compile all of them took longer than its work.
package expression

import (
	"regexp"
	"sync"
)

// Of is for a variable of a package. The function panics if the text is wrong, like
// regexp.MustCompile: each one is used by some test.
func Of(text string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(text) })
}
