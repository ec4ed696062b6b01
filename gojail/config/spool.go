// SPDX-License-Identifier: Apache-2.0

package config

// StandardSpool is SlurmdSpoolDir's default, slurm.conf(5).
const StandardSpool = "/var/spool/slurmd"

// SpoolDir is SlurmdSpoolDir: %n stands for the node's name, %h for its host's.
type SpoolDir struct {
	Dir  string
	Host string
	From string // the slurm.conf that has it; "": none does
}
