// SPDX-License-Identifier: Apache-2.0

// Package poll asks Slurm once per interval, whatever the number of those who want to know, and keeps what it said and
// how old that is.
package poll
