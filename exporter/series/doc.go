// SPDX-License-Identifier: Apache-2.0

// Package series turns what Slurm said into metrics. They are made once per interval, for all who scrape; only how old
// they are is added each time.
package series
