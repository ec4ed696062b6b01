// SPDX-License-Identifier: Apache-2.0

package nhc

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
)

var amount = regexp.MustCompile(`^(0|[1-9][0-9]{0,17})([kKmMgGtTpPeE]?)$`)

// parseSize parses "32gb" to kB: a number without a unit is in kB, and so is "1b".
func parseSize(text string) (int64, error) {
	bare := text
	if n := len(text); n > 0 && (text[n-1] == 'b' || text[n-1] == 'B') {
		bare = text[:n-1]
	}
	m := amount.FindStringSubmatch(bare)
	if m == nil {
		return 0, fmt.Errorf("%.30q: write a size such as 1024k or 32GB", text)
	}
	return multiply(text, m[1], 1024, max(0, strings.Index("KMGTPE", strings.ToUpper(m[2]))))
}

// parseCount parses "100k": the factor is 1000.
func parseCount(text string) (int64, error) {
	m := amount.FindStringSubmatch(text)
	if m == nil {
		return 0, fmt.Errorf("%.30q: write a number such as 1000 or 100k", text)
	}
	power := 0
	if m[2] != "" {
		power = strings.Index("KMGTPE", strings.ToUpper(m[2])) + 1
	}
	return multiply(text, m[1], 1000, power)
}

// multiply multiplies a number by a power of the base, and returns an error on overflow.
func multiply(text, number string, base int64, power int) (int64, error) {
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%.30q: too large", text)
	}
	for range power {
		if n > math.MaxInt64/base {
			return 0, fmt.Errorf("%.30q: too large", text)
		}
		n *= base
	}
	return n, nil
}

// parsePercent parses "3%"; it returns false if the text is no percentage.
func parsePercent(text string) (n int64, ok bool, err error) {
	number, ok := strings.CutSuffix(text, "%")
	if !ok {
		return 0, false, nil
	}
	n, err = strconv.ParseInt(number, 10, 64)
	if err != nil || n < 0 {
		return 0, true, fmt.Errorf("%.30q: write a percentage such as 3%%", text)
	}
	return n, true, nil
}

// parseSeconds parses a whole number of seconds.
func parseSeconds(text string) (int64, error) {
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil || n < 0 {
		return 0, fmt.Errorf("%.30q: write a whole number of seconds", text)
	}
	return n, nil
}
