/* SPDX-License-Identifier: Apache-2.0 */
#include "common/lock.h"

#include "common/clock.h"
#include "common/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>

int lock_wait(int fd, int operation, int pause_ms, int64_t until)
{
	while (flock(fd, operation | LOCK_NB) < 0) {
		if (clock_left(until) == 0)
			return -1;
		clock_pause_ms(pause_ms);
	}
	return 0;
}

bool lock_is_held(int dir, const char *name, int operation)
{
	scoped_fd fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);

	return fd >= 0 && flock(fd, operation | LOCK_NB) < 0;
}

int lock_until(int dir, const char *name, int64_t until, const char *what, struct fault *fault)
{
	scoped_fd fd = openat(dir, name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);

	if (fd < 0)
		return fault_set(fault,
				 "cannot open the lock of %s: %s; is the state directory full "
				 "or read-only?",
				 what, strerror(errno));
	if (lock_wait(fd, LOCK_EX, 1, until) < 0)
		return fault_set(fault, "%s is still being prepared by another process", what);
	return take_fd(&fd);
}
