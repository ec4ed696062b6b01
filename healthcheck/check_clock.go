// SPDX-License-Identifier: Apache-2.0

package healthcheck

import (
	"context"
	"time"

	"golang.org/x/sys/unix"
)

// clock asks the kernel how well the clock is kept (adjtimex(2)); it sends nothing.
func clock(_ context.Context, _ *Host, s *Settings) Finding {
	var t unix.Timex
	if _, err := unix.Adjtimex(&t); err != nil {
		return Found(Unknown, "the kernel does not tell of its clock: %v", err)
	}
	return judgeClock(&t, s.Clock)
}

// judgeClock: STA_UNSYNC says that no daemon has set the clock for a while; the
// offset is what is still to be slewed, the error what the daemon vouches for.
func judgeClock(t *unix.Timex, limit ClockSettings) Finding {
	unit := time.Microsecond
	if t.Status&unix.STA_NANO != 0 {
		unit = time.Nanosecond
	}
	offset := time.Duration(t.Offset) * unit
	off := max(offset.Abs(), 0)
	var p problems
	p.note("offset %v, estimated error %v", offset, time.Duration(t.Esterror)*time.Microsecond)
	unsync := t.Status&unix.STA_UNSYNC != 0
	switch {
	case off > limit.Fail:
		p.failed("the clock is off by more than %v", limit.Fail)
	case off > limit.Warn:
		p.warned("the clock is off by more than %v", limit.Warn)
	case unsync:
		p.warned("nothing keeps the clock: the kernel calls it unsynchronized")
	}
	f := p.finding("the clock is kept")
	f.Metrics = []Metric{
		{Name: "clock_offset_seconds", Help: "What is still to be slewed of the clock.", Value: offset.Seconds()},
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
