// SPDX-License-Identifier: Apache-2.0

package config

// StandardSpool is the default of SlurmdSpoolDir (slurm.conf(5)).
const StandardSpool = "/var/spool/slurmd"

// SpoolDir is the value of SlurmdSpoolDir, with %n for the node's name and %h for its host name.
type SpoolDir struct {
	Dir  string
	Host string
	From string // path of the slurm.conf that sets it; "": the default
}
