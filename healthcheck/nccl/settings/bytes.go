// SPDX-License-Identifier: Apache-2.0

package settings

import (
	"errors"
	"strconv"
	"strings"
)

// ParseBytes parses a size as nccl-tests does: K, M and G are powers of 1024.
func ParseBytes(size string) (int64, error) {
	digits, unit := size, int64(1)
	for i, letter := range []string{"K", "M", "G"} {
		if d, found := strings.CutSuffix(strings.ToUpper(size), letter); found {
			digits, unit = d, 1<<(10*(i+1))
		}
	}
	n, err := strconv.ParseInt(digits, 10, 32)
	if err != nil || n < 1 || n*unit > 1<<40 {
		return 0, errors.New(`write bytes as in "512M" or "16G"`)
	}
	return n * unit, nil
}
