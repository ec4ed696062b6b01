// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"context"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/healthcheck/check"
)

// clock checks the kernel's estimate of the clock's error (adjtimex(2)); it sends nothing.
func clock(_ context.Context, _ *check.Host, s *check.Settings) check.Finding {
	var t unix.Timex
	if _, err := unix.Adjtimex(&t); err != nil {
		return check.NewFinding(check.Unknown, "cannot read the kernel's clock state: %v", err)
	}
	return judgeClock(&t, s.Clock)
}

// judgeClock compares the clock's maximum error (maxerror of adjtimex(2)) with the limits. The
// program that sets the clock reports that error, and the kernel adds 0.5 ms for each second
// since. From 16 s on, or if the clock was never set, the kernel reports the clock as
// unsynchronized (kernel/time/ntp.c). The offset is no measure of the error: it is the
// remaining correction to be slewed, at most 0.5 s.
func judgeClock(t *unix.Timex, limit check.ClockSettings) check.Finding {
	unit := time.Microsecond
	if t.Status&unix.STA_NANO != 0 {
		unit = time.Nanosecond
	}
	offset, estimated, most := time.Duration(t.Offset)*unit, time.Duration(t.Esterror)*time.Microsecond,
		time.Duration(t.Maxerror)*time.Microsecond
	var p problems
	p.addNote("offset %v, estimated error %v, greatest %v", offset, estimated, most)
	unsync := t.Status&unix.STA_UNSYNC != 0
	const unsyncText = "the kernel reports the clock as unsynchronized"
	switch off := max(estimated, most); {
	case unsync && limit.Fail > 0:
		p.addUnknown(unsyncText) // Unknown does not undrain a node that was drained for its clock
	case unsync:
		p.addWarning(unsyncText)
	case limit.Fail > 0 && off > limit.Fail:
		p.addFailure("the clock may be off by more than %v", limit.Fail)
	case off > limit.Warn:
		p.addWarning("the clock may be off by more than %v", limit.Warn)
	}
	f := p.buildFinding("the clock is synchronized")
	f.Metrics = []check.Metric{
		{Name: "clock_offset_seconds", Help: "Remaining offset of the clock that is still to be slewed.",
			Value: offset.Seconds()},
		{Name: "clock_max_error_seconds", Help: "Maximum error of the clock as estimated by the kernel.",
			Value: most.Seconds()},
		{Name: "clock_unsynchronized", Help: "1 if the kernel reports the clock as unsynchronized.",
			Value: boolValue(unsync)},
	}
	return f
}

// boolValue returns 1 for true and 0 for false.
func boolValue(is bool) float64 {
	if is {
		return 1
	}
	return 0
}
