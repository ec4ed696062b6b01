// SPDX-License-Identifier: Apache-2.0

package check

import "sync"

// Shared caches what several checks of one process read.
type Shared struct {
	mutex sync.Mutex
	reads map[string]any // by key: a func() (T, error)
}

// ReadOnce returns what read returns. Of several calls with the same key only the first one
// reads, and the others wait for it. Without a cache (nil) each call reads.
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
