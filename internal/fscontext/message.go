// SPDX-License-Identifier: Apache-2.0

// Package fscontext reads the kernel's messages about a file system context (fsopen(2)).
package fscontext

import (
	"strings"

	"golang.org/x/sys/unix"
)

// Message reads the kernel's messages about a file system context: lines that begin with their level, such
// as "e tmpfs: Bad value for 'size'".
func Message(context int) string {
	var lines []string
	buf := make([]byte, 512)
	for len(lines) < 4 {
		n, err := unix.Read(context, buf)
		if err != nil || n <= 0 {
			break
		}
		line := strings.TrimSpace(string(buf[:n]))
		if len(line) > 2 && line[1] == ' ' {
			line = line[2:]
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "; ")
}
