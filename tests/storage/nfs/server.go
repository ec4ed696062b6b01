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

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/gojail/gojail/tests/vm"
)

// Address of the server, on the bridge that leads to each client (RFC 2544, benchmarks).
const Address = "198.18.0.1"

// AllClients are all clients, as exports(5) names a network.
const AllClients = "198.18.0.0/24"

// Server is one kernel nfsd with its helpers.
type Server struct {
	Dir     string // what the server has as /export, as this machine sees it
	inside  namespace
	daemons []*exec.Cmd
	clients int
}

// FindMissing says why no server can run here, or "".
func FindMissing() string {
	if os.Getenv(vm.GuestVariable) == "" {
		return "needs the kernel's nfsd as the VM has it: make vm-storage"
	}
	if _, err := os.Stat(filepath.Join(vm.Storage, "usr/sbin/rpc.nfsd")); err != nil {
		return "needs the programs of a file server: tests/storage/fetch"
	}
	return ""
}

// root is the server's, in its mount namespace: in memory, since the first of the
// directories on the way to what it exports must itself be exportable.
const root = "/run/fileserver"

// rootScript makes the server's root: the programs from $1, and $2 as /export.
const rootScript = `hostname server
root=` + root + `
mkdir -p "$root"
mount -t tmpfs -o mode=755 tmpfs "$root"
cd "$root"
mkdir -p usr proc dev run/rpc_pipefs tmp export var/lib/nfs/nfsdcld var/lib/nfs/v4recovery
cp -a "$1/etc" "$1/bin" "$1/sbin" "$1/lib" "$1/lib64" .
touch var/lib/nfs/etab var/lib/nfs/rmtab
mount --bind "$1/usr" usr
mount -t proc proc proc
mount -t nfsd nfsd proc/fs/nfsd
mount --rbind /dev dev
mount -t rpc_pipefs rpc_pipefs run/rpc_pipefs
mount --rbind "$2" export
ip link add clients type bridge
ip address add ` + Address + `/24 dev clients
ip link set clients up`

// Start starts a server that has dir as /export. Nothing is exported yet.
func Start(dir string) (*Server, error) {
	inside, err := newNamespace(rootScript, vm.Storage, dir)
	if err != nil {
		return nil, err
	}
	s := &Server{Dir: dir, inside: inside}
	if err := s.StartDaemons(); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// newCommand is a program of the server's tree, in its namespaces.
func (s *Server) newCommand(program string, args ...string) *exec.Cmd {
	args = append([]string{"--target", s.inside.holderPid(), "--net", "--mount", "--uts", "--", "chroot", root, program}, args...)
	return exec.Command("nsenter", args...)
}

// Run runs a program of the server's tree to its end: paths are below /export there.
func (s *Server) Run(program string, args ...string) (string, error) {
	return runCommand(s.newCommand(program, args...))
}

// Mount mounts a file system on a path below /export, as mount(8) of this machine does.
func (s *Server) Mount(path string, args ...string) error {
	return s.inside.runInside(append(append([]string{"mount"}, args...), root+path)...)
}

// Unmount takes it away again, from nfsd's cache of open files a moment later.
func (s *Server) Unmount(path string) error { return s.inside.runInside("umount", "-l", root+path) }

// StartDaemons starts the daemons and lets the kernel serve; leases and the time in which
// clients may claim what they had are 10 s, the least there is.
func (s *Server) StartDaemons() error {
	for _, daemon := range [][]string{
		{"/usr/sbin/rpcbind", "-f", "-w"},
		{"/usr/sbin/nfsdcld", "-F", "-p", "/run/rpc_pipefs/nfsd", "-s", "/var/lib/nfs/nfsdcld"},
		{"/usr/sbin/rpc.mountd", "-F", "--port", mountPort},
	} {
		cmd := s.newCommand(daemon[0], daemon[1:]...)
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		if err := cmd.Start(); err != nil {
			return fmt.Errorf("nfs: start %s: %w", daemon[0], err)
		}
		s.daemons = append(s.daemons, cmd)
		if err := s.waitForDaemon(daemon[0]); err != nil {
			return err
		}
	}
	_, err := s.Run("/usr/sbin/rpc.nfsd", "--lease-time", "10", "--grace-time", "10", "8")
	return err
}

// waitForDaemon waits until a daemon can do its part for those that are started after it.
func (s *Server) waitForDaemon(daemon string) error {
	ask := map[string][]string{
		"/usr/sbin/rpcbind":    {"/usr/sbin/rpcinfo", "-T", "tcp", "127.0.0.1", "100000", "3"},
		"/usr/sbin/rpc.mountd": {"/usr/sbin/rpcinfo", "-T", "tcp", "127.0.0.1", "100005", "3"},
	}[daemon]
	if ask == nil {
		return nil
	}
	var err error
	for end := time.Now().Add(commandTimeout); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if _, err = s.Run(ask[0], ask[1:]...); err == nil {
			return nil
		}
	}
	return err
}

// StopDaemons ends nfsd and its helpers, as at the server's shutdown: the machine is
// there and refuses connections. Exports are kept.
func (s *Server) StopDaemons() error {
	_, err := s.Run("/usr/sbin/rpc.nfsd", "0")
	for _, daemon := range s.daemons {
		daemon.Process.Kill()
		daemon.Wait()
	}
	s.daemons = nil
	return err
}

// Close ends the server for good.
func (s *Server) Close() error {
	err := s.StopDaemons()
	s.inside.close()
	return err
}

// Export exports a path below /export to a client's address, or to Everybody.
// options are those of exports(5); fsid is what file handles begin with: another
// one makes each handle that a client holds stale.
func (s *Server) Export(path, client, options string, fsid int) error {
	all := fmt.Sprintf("%s,no_subtree_check,fsid=%d", options, fsid)
	_, err := s.Run("/usr/sbin/exportfs", "-o", all, client+":"+path)
	return err
}

// Unexport takes it back.
func (s *Server) Unexport(path, client string) error {
	_, err := s.Run("/usr/sbin/exportfs", "-u", client+":"+path)
	return err
}
