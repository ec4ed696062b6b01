// SPDX-License-Identifier: Apache-2.0

// Package session tests gojail-session on a private cluster, with sshd, ssh, scp, sftp and rsync of the distribution.
package session
