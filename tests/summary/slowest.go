// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
)

// A test of so many seconds is worth a look where a suite has to end within a time; so many of them are printed.
const (
	slowSeconds  = 10
	slowestTests = 15
)

// printSlowest prints the tests that took longest, with the seconds of both tries of a test that was run twice.
func printSlowest(out io.Writer, seconds map[string]float64) {
	tests := slices.SortedFunc(maps.Keys(seconds), func(a, b string) int {
		return cmp.Or(cmp.Compare(seconds[b], seconds[a]), cmp.Compare(a, b))
	})
	for _, test := range tests[:min(slowestTests, len(tests))] {
		if seconds[test] < slowSeconds {
			return
		}
		fmt.Fprintf(out, "slow    %s: %.0f s\n", test, seconds[test])
	}
}
