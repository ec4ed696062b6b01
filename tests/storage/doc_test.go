// SPDX-License-Identifier: Apache-2.0

// Package storage_test runs jails whose root is on a file server: two nodes that
// are two clients of it, in the guest of package vm (make vm-storage).
//
// The server has the tree open, which it exports as it is (no_root_squash), and
// the tree squash, where root of the nodes is nobody (root_squash) and root of the
// host admin is root. Each has a jail of the same name and a directory of homes. What
// one test needs beyond that is in the tree more.
//
// Server and nodes share one kernel, and so one clock. What compares the times of two
// machines, the leases in a store of jails, is tested with leases whose time is moved
// (TestCollectionOnNFS).
package storage_test
