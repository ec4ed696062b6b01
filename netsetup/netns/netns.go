// SPDX-License-Identifier: Apache-2.0

// Package netns runs code inside a network namespace that is given as an open
// descriptor. It is for what the kernel ties to the calling thread: opening
// sockets and files below /proc/sys/net, mounting a sysfs, moving RDMA devices.
// What has a netlink socket of its own needs no thread: see package link.
//
// Inside needs CAP_SYS_ADMIN (setns(2)). Linux 5.12 is gojail's floor; this
// package alone would do with 3.0.
package netns

import (
	"errors"
	"fmt"
	"runtime"

	"golang.org/x/sys/unix"
)

// Inside calls f on an operating system thread that is in the namespace ns, and
// returns what f returns. The caller's own goroutine and thread stay where they
// are. f must start no goroutine that relies on the namespace, and must not call
// runtime.UnlockOSThread.
//
// A thread is used again only if it came back to its own namespace; else it ends here.
func Inside(ns int, f func() error) error {
	if ns < 0 {
		return fmt.Errorf("enter a network namespace: descriptor %d: %w", ns, unix.EBADF)
	}
	done := make(chan error, 1)
	go func() { done <- onThread(ns, f) }()
	return <-done
}

// New makes a network namespace, which lives as long as its descriptor, and
// whatever else comes to hold it. It has a loopback interface that is down.
func New() (ns int, err error) {
	done := make(chan error, 1)
	go func() {
		done <- onThread(-1, func() error {
			ns, err = unix.Open(current, unix.O_RDONLY|unix.O_CLOEXEC, 0)
			return err
		})
	}()
	if err := <-done; err != nil {
		return -1, err
	}
	return ns, nil
}

const current = "/proc/thread-self/ns/net"

// onThread: ns -1 is a new namespace.
func onThread(ns int, f func() error) error {
	runtime.LockOSThread()
	if unix.Gettid() == unix.Getpid() {
		// /proc/self is the main thread, and the main thread cannot be thrown away.
		defer runtime.UnlockOSThread()
		done := make(chan error, 1)
		go func() { done <- onThread(ns, f) }()
		return <-done
	}
	home, err := unix.Open(current, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		runtime.UnlockOSThread()
		return fmt.Errorf("enter a network namespace: open %s: %w; is /proc mounted?", current, err)
	}
	defer unix.Close(home)
	if ns == -1 {
		err = unix.Unshare(unix.CLONE_NEWNET)
	} else {
		err = unix.Setns(ns, unix.CLONE_NEWNET)
	}
	if err != nil {
		runtime.UnlockOSThread()
		return fmt.Errorf("enter a network namespace: %w%s", err, hint(err))
	}
	defer func() {
		if unix.Setns(home, unix.CLONE_NEWNET) == nil {
			runtime.UnlockOSThread()
		}
	}()
	return f()
}

func hint(err error) string {
	switch {
	case errors.Is(err, unix.EPERM):
		return "; CAP_SYS_ADMIN is needed"
	case errors.Is(err, unix.ENOSPC):
		return "; /proc/sys/user/max_net_namespaces is reached"
	case errors.Is(err, unix.EINVAL), errors.Is(err, unix.EBADF):
		return "; the descriptor is not an open network namespace"
	}
	return ""
}
