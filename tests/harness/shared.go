// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"fmt"
	"os"
	"testing"
)

// Shared is what the tests of a package share: a cluster, or what they build on one. The first test that gets it starts it.
type Shared[T interface {
	comparable
	Stop() error
}] struct {
	started T // also after an error, when it has something to stop
	err     error
	tried   bool
}

// Get returns what is shared, which start makes once. It skips the test on a machine that cannot have a cluster, and fails it if the start
// has failed.
func (s *Shared[T]) Get(t testing.TB, start func() (T, error)) T {
	t.Helper()
	if why := Missing(); why != "" {
		t.Skip(why)
	}
	if !s.tried {
		s.tried = true
		s.started, s.err = start()
	}
	if s.err != nil {
		t.Fatal(s.err)
	}
	return s.started
}

// Main runs the tests of a package and stops what they share. It returns the exit code.
func (s *Shared[T]) Main(m *testing.M) int {
	code := m.Run()
	var none T
	if s.started != none {
		if err := s.started.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	return code
}
