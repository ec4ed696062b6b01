// SPDX-License-Identifier: Apache-2.0

// Package inside has the tests that run in the guest of package vm: what real
// SR-IOV cards, soft RDMA and cgroup v2 do there. make test-vm runs them; on any
// other machine they are skipped.
package inside
