// SPDX-License-Identifier: Apache-2.0

// Package nfs is a file server and its clients on one machine: kernel nfsd in
// namespaces of its own (network, mounts, host name), and clients that each have
// a network namespace with one link to the server. So a client has a connection
// and a client ID of its own (nfs4_init_uniform_client_string in fs/nfs/nfs4proc.c
// takes the host name), and its link can be cut, or made slow, alone.
//
// The server's programs are those of tests/storage/fetch. Its kernel modules are
// in the guest of package vm, where all of this runs.
package nfs
