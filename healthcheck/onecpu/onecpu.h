// SPDX-License-Identifier: Apache-2.0

#pragma once

// gojail_onecpu_stay keeps this process, which has one thread yet, on the CPU that it is on.
void gojail_onecpu_stay(void);

// gojail_onecpu_leave gives the calling thread back what the process had before.
void gojail_onecpu_leave(void);
