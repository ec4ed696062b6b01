// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"strings"
)

// JailError names the jail of an error that does not name it yet.
func JailError(name string, err error) error {
	if err == nil || strings.HasPrefix(err.Error(), "jail "+name+": ") {
		return err
	}
	return fmt.Errorf("jail %s: %w", name, err)
}
