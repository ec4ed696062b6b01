// SPDX-License-Identifier: Apache-2.0

// Package lease records in the store which versions of jails this node uses.
//
// Before the root of a jail is opened, the version to which its path leads is noted in the state directory. A lease is
// made from these notes, and from the roots of templates and of jobs' holders in /proc. It has the time at which the
// node began to make it: a version that is not in the lease, and was not current at that time, is not in use on the
// node, and cannot come into use. A lease that cannot be written delays the removal of versions, but fails no job.
package lease
