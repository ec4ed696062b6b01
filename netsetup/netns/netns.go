// SPDX-License-Identifier: Apache-2.0

// Package netns runs code in a network namespace, which is given as an open descriptor.
// It serves operations that depend on the calling thread: opening sockets and files below
// /proc/sys/net, mounting a sysfs, moving RDMA devices. Operations on an existing netlink
// socket need no thread in the namespace: see package link.
//
// RunInside needs CAP_SYS_ADMIN (setns(2)). Linux 5.12 is gojail's floor; this
// package alone needs 3.0.
package netns

import (
	"errors"
	"fmt"
	"runtime"

	"golang.org/x/sys/unix"
)

// RunInside calls f on an operating system thread in the namespace ns, and returns the
// result of f. The caller's own goroutine and thread stay where they are. f must not start a
// goroutine that relies on the namespace, and must not call runtime.UnlockOSThread.
//
// The thread is used again only if it has returned to its own namespace; otherwise it ends.
func RunInside(ns int, f func() error) error {
	if ns < 0 {
		return fmt.Errorf("enter a network namespace: descriptor %d: %w", ns, unix.EBADF)
	}
	done := make(chan error, 1)
	go func() { done <- runOnThread(ns, f) }()
	return <-done
}

// New creates a network namespace and returns its descriptor. The namespace lives as long as
// the descriptor or another reference to it. It has a loopback interface that is down.
func New() (ns int, err error) {
	done := make(chan error, 1)
	go func() {
		done <- runOnThread(-1, func() error {
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

// runOnThread calls f on a locked thread in the namespace ns, or in a new namespace if ns is
// -1.
func runOnThread(ns int, f func() error) error {
	runtime.LockOSThread()
	if unix.Gettid() == unix.Getpid() {
		// The main thread must stay: /proc/self refers to it, and it cannot end alone.
		defer runtime.UnlockOSThread()
		done := make(chan error, 1)
		go func() { done <- runOnThread(ns, f) }()
		return <-done
	}
	home, err := unix.Open(current, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		runtime.UnlockOSThread()
		return fmt.Errorf("enter a network namespace: open %s: %w; check that /proc is mounted", current, err)
	}
	defer unix.Close(home)
	if ns == -1 {
		err = unix.Unshare(unix.CLONE_NEWNET)
	} else {
		err = unix.Setns(ns, unix.CLONE_NEWNET)
	}
	if err != nil {
		runtime.UnlockOSThread()
		return fmt.Errorf("enter a network namespace: %w%s", err, advise(err))
	}
	defer func() {
		if unix.Setns(home, unix.CLONE_NEWNET) == nil {
			runtime.UnlockOSThread()
		}
	}()
	return f()
}

func advise(err error) string {
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
