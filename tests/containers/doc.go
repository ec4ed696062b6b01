// SPDX-License-Identifier: Apache-2.0

// Package containers runs the recipes of docs/containers.md: Podman, Buildah, bubblewrap, Charliecloud, PRoot and FUSE file systems of
// Debian in a jail, with each setting that the page names, and without it.
//
// Needs what tests/slurm needs, and a root with these programs, which `make containers` makes.
package containers
