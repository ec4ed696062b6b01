// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"strings"
)

// JailError adds the jail's name to an error that does not begin with it.
func JailError(name string, err error) error {
	if err == nil || strings.HasPrefix(err.Error(), "jail "+name+": ") {
		return err
	}
	return fmt.Errorf("jail %s: %w", name, err)
}
