// SPDX-License-Identifier: Apache-2.0

// Package escape attacks the isolation of jails. The attacks are one static
// program (attack/), which says of each whether it ESCAPED or was HELD. It runs in
// two jails on a private Slurm: "open" has all isolation switched off, "closed" has
// the defaults. Each attack must be seen succeeding somewhere, which is its control
// (in "open", or, where already the plainest jail is in its way, on the node or in
// a worse jail that the test makes), and failing in "closed".
//
// Besides: races at launch and at the end of a job, planted files, what a job leaves
// behind, what slurmstepd opens for its user, and what root can do in a jail.
//
// go test ./tests/escape runs them all, the races for some hundred rounds; with
// GOJAIL_ESCAPE=all these have thousands.
package escape_test
