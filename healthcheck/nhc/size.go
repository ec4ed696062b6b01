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

// size reads "32gb" in kB: a number without a unit is kB, and so is "1b".
func size(text string) (int64, error) {
	bare := text
	if n := len(text); n > 0 && (text[n-1] == 'b' || text[n-1] == 'B') {
		bare = text[:n-1]
	}
	m := amount.FindStringSubmatch(bare)
	if m == nil {
		return 0, fmt.Errorf("%.30q: write a size such as 1024k or 32GB", text)
	}
	return times(text, m[1], 1024, max(0, strings.Index("KMGTPE", strings.ToUpper(m[2]))))
}

// count reads "100k": a thousand is 1000.
func count(text string) (int64, error) {
	m := amount.FindStringSubmatch(text)
	if m == nil {
		return 0, fmt.Errorf("%.30q: write a number such as 1000 or 100k", text)
	}
	power := 0
	if m[2] != "" {
		power = strings.Index("KMGTPE", strings.ToUpper(m[2])) + 1
	}
	return times(text, m[1], 1000, power)
}

func times(text, number string, base int64, power int) (int64, error) {
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

// percent reads "3%"; false if it is none.
func percent(text string) (n int64, is bool, err error) {
	number, is := strings.CutSuffix(text, "%")
	if !is {
		return 0, false, nil
	}
	n, err = strconv.ParseInt(number, 10, 64)
	if err != nil || n < 0 {
		return 0, true, fmt.Errorf("%.30q: write a percentage such as 3%%", text)
	}
	return n, true, nil
}

// seconds reads a whole number of seconds.
func seconds(text string) (int64, error) {
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil || n < 0 {
		return 0, fmt.Errorf("%.30q: write a whole number of seconds", text)
	}
	return n, nil
}
