// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"context"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/healthcheck/check"
)

// clock asks the kernel how well the clock is kept (adjtimex(2)); it sends nothing.
func clock(_ context.Context, _ *check.Host, s *check.Settings) check.Finding {
	var t unix.Timex
	if _, err := unix.Adjtimex(&t); err != nil {
		return check.Found(check.Unknown, "the kernel does not tell of its clock: %v", err)
	}
	return judgeClock(&t, s.Clock)
}

// judgeClock goes by the kernel's word: the greatest error that the clock can have as
// whoever sets it vouches for it, and 0.5 ms more for each second since (maxerror).
// From 16 s on, and if nobody ever set it, the kernel calls it unsynchronized
// (kernel/time/ntp.c). The offset says nothing of that: it is what is still to be
// slewed, 0.5 s at most.
func judgeClock(t *unix.Timex, limit check.ClockSettings) check.Finding {
	unit := time.Microsecond
	if t.Status&unix.STA_NANO != 0 {
		unit = time.Nanosecond
	}
	offset, estimated, most := time.Duration(t.Offset)*unit, time.Duration(t.Esterror)*time.Microsecond, time.Duration(t.Maxerror)*time.Microsecond
	var p problems
	p.note("offset %v, estimated error %v, greatest %v", offset, estimated, most)
	unsync := t.Status&unix.STA_UNSYNC != 0
	const unkept = "nothing keeps the clock: the kernel calls it unsynchronized"
	switch off := max(estimated, most); {
	case unsync && limit.Fail > 0:
		p.unclear(unkept) // that mends no node which is drained for its clock
	case unsync:
		p.warned(unkept)
	case limit.Fail > 0 && off > limit.Fail:
		p.failed("the clock may be off by more than %v", limit.Fail)
	case off > limit.Warn:
		p.warned("the clock may be off by more than %v", limit.Warn)
	}
	f := p.finding("the clock is kept")
	f.Metrics = []check.Metric{
		{Name: "clock_offset_seconds", Help: "What is still to be slewed of the clock.", Value: offset.Seconds()},
		{Name: "clock_max_error_seconds", Help: "How far the clock may be off, as the kernel reckons.", Value: most.Seconds()},
		{Name: "clock_unsynchronized", Help: "1 if the kernel calls the clock unsynchronized.", Value: number(unsync)},
	}
	return f
}

func number(is bool) float64 {
	if is {
		return 1
	}
	return 0
}
