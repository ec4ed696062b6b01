// SPDX-License-Identifier: Apache-2.0

package node

import "os"

func HostName() string {
	name, _ := os.Hostname()
	return name
}
