// SPDX-License-Identifier: Apache-2.0

// Package gpu tests gojail with the NVIDIA GPUs of this machine: jobs in jails on a private Slurm compute on the GPUs that
// Slurm gave them and reach no other, and the health check judges the real driver.
//
// The node's driver comes into the jail by a CDI file that the tests write from the libraries that ldconfig(8) lists, as
// nvidia-ctk cdi generate does. No setting of a GPU is changed. Needs what tests/slurm needs, a GPU with its driver, and gcc.
package gpu
