// SPDX-License-Identifier: Apache-2.0

package main

/*
#cgo CFLAGS: -Wall -Wextra -Werror
#include "supervise.h"
*/
import "C"

import (
	"encoding/binary"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// grace is for a run to end by itself, before its supervisor (supervise.c) kills it.
const grace = time.Second

// supervised tells whether this process is the child of one that outlives it.
func supervised() bool { return C.gojail_health_control() >= 0 }

// started is when the program was: a second try has the time of the first.
func started() time.Time {
	if !supervised() {
		return time.Now()
	}
	return time.Now().Add(-time.Duration(C.gojail_health_elapsed()) * time.Millisecond)
}

// hand gives the lock of the run to the supervisor, and says how long the run may take:
// if this process cannot be killed, the lock is free nevertheless.
func hand(lock *os.File, limit time.Duration) error {
	err := send(C.GOJAIL_HEALTH_LIMIT, int32(limit.Milliseconds()), unix.UnixRights(int(lock.Fd())))
	if err != nil {
		return fmt.Errorf("cannot hand over the lock of the run: %w", err)
	}
	return lock.Close()
}

// tell tells the exit status.
func tell(status int) {
	if supervised() {
		_ = send(C.GOJAIL_HEALTH_STATUS, int32(status), nil)
	}
}

func send(what, value int32, rights []byte) error {
	text := binary.NativeEndian.AppendUint32(binary.NativeEndian.AppendUint32(nil, uint32(what)), uint32(value))
	return unix.Sendmsg(int(C.gojail_health_control()), text, rights, nil, 0)
}
