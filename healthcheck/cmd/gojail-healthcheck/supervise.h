// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <stdint.h>

// What a run tells its supervisor, a message each, in milliseconds or as the exit status.
enum { GOJAIL_HEALTH_LIMIT, GOJAIL_HEALTH_STATUS };

struct gojail_health_message {
	int32_t what;
	int32_t value;
};

// gojail_health_control is the descriptor for messages to the supervisor; -1: there is none.
int gojail_health_control(void);

// gojail_health_elapsed is how long ago the supervisor started, in milliseconds.
int64_t gojail_health_elapsed(void);
