// SPDX-License-Identifier: Apache-2.0

package storage_test

import (
	"strings"
	"sync"
)

// lines is what a command that still runs has printed so far.
type lines struct {
	sync.Mutex
	text strings.Builder
}

func (l *lines) Write(p []byte) (int, error) {
	l.Lock()
	defer l.Unlock()
	return l.text.Write(p)
}

func (l *lines) String() string {
	l.Lock()
	defer l.Unlock()
	return l.text.String()
}

// hasLine says whether a line of that text has been printed.
func (l *lines) hasLine(line string) bool { return strings.Contains("\n"+l.String(), "\n"+line+"\n") }
