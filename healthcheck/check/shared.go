// SPDX-License-Identifier: Apache-2.0

package check

import "sync"

// Shared is a cache for data that several checks of one process read.
type Shared struct {
	mutex sync.Mutex
	reads map[string]any // func() (T, error) by key
}

// ReadOnce returns the result of read. Of several calls with the same key only the first one
// calls read, and the others wait for its result. Without a cache (s is nil) each call calls
// read.
func ReadOnce[T any](s *Shared, key string, read func() (T, error)) (T, error) {
	if s == nil {
		return read()
	}
	s.mutex.Lock()
	once, found := s.reads[key].(func() (T, error))
	if !found {
		once = sync.OnceValues(read)
		if s.reads == nil {
			s.reads = map[string]any{}
		}
		s.reads[key] = once
	}
	s.mutex.Unlock()
	return once()
}
