// SPDX-License-Identifier: Apache-2.0

package nhc

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// parseLoadAverage parses check_ps_loadavg [1M [5M [15M]]]: whole numbers below which the load
// must stay.
func parseLoadAverage(_ *Line, args []string) (assertion, error) {
	if err := checkArguments(args, 1, 3); err != nil {
		return nil, err
	}
	limit := make([]int, len(args))
	for i, text := range args {
		var err error
		if limit[i], err = strconv.Atoi(text); err != nil && text != "" {
			return nil, newRefusal(text, "a whole number")
		}
	}
	return func(_ context.Context, s *System) (string, error) {
		text, err := os.ReadFile(filepath.Join(s.Proc, "loadavg"))
		f := strings.Fields(string(text))
		if err != nil || len(f) < 3 {
			return "", errors.New("cannot read the load averages")
		}
		for i, minutes := range []string{"1", "5", "15"}[:len(args)] {
			load, err := strconv.ParseFloat(f[i], 64)
			if err != nil {
				return "", errors.New("cannot parse the load averages")
			}
			if args[i] != "" && int(load) >= limit[i] {
				return fmt.Sprintf("the %s-minute load average is %d or more", minutes, limit[i]), nil
			}
		}
		return "", nil
	}, nil
}
