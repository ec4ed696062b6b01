/* SPDX-License-Identifier: Apache-2.0 */
/* hash.h: the hash FNV-1a, 64 bits (datatracker.ietf.org/doc/html/draft-eastlake-fnv). */
#ifndef GOJAIL_HASH_H
#define GOJAIL_HASH_H

#include <stddef.h>
#include <stdint.h>

#define HASH_BEGIN 14695981039346656037ull

/* Returns the hash of what was hashed before, HASH_BEGIN for nothing, and of so many bytes after it. */
static inline uint64_t hash_add(uint64_t hash, const char *bytes, size_t count)
{
	for (size_t i = 0; i < count; i++)
		hash = (hash ^ (unsigned char)bytes[i]) * 1099511628211ull;
	return hash;
}

#endif
