// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestProgressNamesTests(t *testing.T) {
	var b strings.Builder
	p := &progress{to: &b}
	for _, part := range []string{"\x16=== RUN   Test", "One\n\x16=== RUN   TestOne/part\nok\n", "--- PASS: TestOne\n=== RUN   TestTwo\n"} {
		fmt.Fprint(p, part)
	}
	assert.Equal(t, []string{"in the guest: TestOne", "in the guest: TestTwo"}, strings.Split(strings.TrimSpace(b.String()), "\n"))
}
