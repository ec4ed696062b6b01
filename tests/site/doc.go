// SPDX-License-Identifier: Apache-2.0

// Package site tests gojail as a site has it: three virtual machines with systemd as process 1, where apt has installed
// gojail's packages and docs/install.md was followed.
//
//	head  slurmctld, slurmdbd with MariaDB, the NFS server of jails, homes and StateSaveLocation; users submit here, and
//	      in one test log in
//	n1    slurmd
//	n2    slurmd, and the second slurmctld
//
// Each has a disk of its own that outlives a reboot and a power cut, which is the end of its QEMU, and both nodes have a
// card with SR-IOV. A hub in the process of the tests is their network. Their root is made once, by tests/site/make;
// packages of this tree and of two earlier commits by tests/site/packages, those of the next Slurm are fetched by
// tests/site/slurm. Tests run scripts in the machines through an agent on a serial port (package wire), which needs neither
// network nor Slurm.
//
// The tests share one site, and each leaves it as it was, but for the last, the upgrade of Slurm. GOJAIL_SITE_KEEP=1 keeps
// the disks and consoles below build/vm. GOJAIL_SITE_HOLD=1 leaves the machines on after the tests, and prints the value of
// GOJAIL_SITE with which another run of the tests uses them. GOJAIL_SITE_JOBS is the number of jobs of TestSoak, and
// GOJAIL_SITE_SEED repeats its order of kills.
package site
