// SPDX-License-Identifier: Apache-2.0

// Package escape attacks the isolation of jails. The attacks are one static
// program (attack/), which prints for each whether it ESCAPED or was HELD. It runs
// in two jails on a private Slurm: "open" has all isolation switched off, "closed"
// has the defaults. Each attack must fail in "closed", and succeed in its control:
// in "open", or, if even the plainest jail stops it, on the node or in a weaker jail
// that the test makes.
//
// Other tests cover races at launch and at the end of a job, planted files, what a job leaves
// behind, what slurmstepd opens for its user, and what root can do in a jail.
//
// go test ./tests/escape runs them all, the races for some hundred rounds, and
// for thousands with GOJAIL_ESCAPE=all.
package escape_test
