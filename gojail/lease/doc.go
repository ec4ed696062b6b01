// SPDX-License-Identifier: Apache-2.0

// Package lease tells the store which versions of jails this node uses.
//
// Before the root of a jail is opened, the version that its path leads to is noted in the state directory. A lease is
// made of these notes and of what the kernel has as the roots of templates and of jobs' holders. It has the time at
// which the node began to look: a version that is missing in it, and was not current at that time, is not in use here
// and cannot come into use. So that a lease that cannot be written delays the removal of versions, and fails no job.
package lease
