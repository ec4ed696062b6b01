// SPDX-License-Identifier: Apache-2.0

package state

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/gojail/contract"
)

// storageVerdicts are the words for GOJAIL_STORAGE_... of include/gojail.h, by number.
var storageVerdicts = []string{"ok", "stale", "switched", "failed", "silent"}

// storageRequest and storageReply have the layout of the structs of include/gojail.h.
type storageRequest struct{ Version, Flags, Patience uint32 }

type storageReply struct {
	Version        uint32
	Verdict, Errno int32
	Text           [contract.TextMax]byte
}

// Identity returns the identity of a jail's root when its template was assembled, or "".
func (s *State) Identity(jail string) string {
	text, err := os.ReadFile(filepath.Join(s.JailDir(jail), contract.IdentityFile))
	if err != nil {
		return ""
	}
	line, _, _ := strings.Cut(string(text), "\n")
	return line
}

// ProbeStorage asks the zygote of a jail whether the storage answers, and whether the path of the root still leads to
// the root of the template. It touches no storage itself. verdict is a word (ok, stale, switched, failed, silent);
// reason is empty for ok. An error means that there is no answer.
func (s *State) ProbeStorage(jail string, patience time.Duration) (verdict, reason string, err error) {
	fd, err := s.connectTo(jail, contract.StorageSocket, patience+time.Second)
	if err != nil {
		return "", "", describeStuck(err, "its zygote")
	}
	defer unix.Close(fd)
	var request bytes.Buffer
	binary.Write(&request, binary.NativeEndian, storageRequest{contract.Version, 0, uint32(patience.Milliseconds())})
	if err := unix.Sendto(fd, request.Bytes(), unix.MSG_NOSIGNAL, nil); err != nil {
		return "", "", err
	}
	verdict, reason, err = readStorageReply(fd)
	return verdict, reason, describeStuck(err, "its zygote")
}

// connectTo connects to a socket of a jail. Each call on the socket, and the connection itself, fails with EAGAIN after
// the timeout.
func (s *State) connectTo(jail, name string, timeout time.Duration) (int, error) {
	dir, err := os.Open(s.JailDir(jail))
	if err != nil {
		return -1, err
	}
	defer dir.Close()
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	limit := unix.NsecToTimeval(timeout.Nanoseconds())
	err = unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &limit)
	if err == nil {
		// Also the limit of connect(2), while the queue is full.
		err = unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &limit)
	}
	if err == nil { // by a descriptor, because the address of a socket has at most 107 bytes (unix(7))
		err = unix.Connect(fd, &unix.SockaddrUnix{Name: fmt.Sprintf("/proc/self/fd/%d/%s", dir.Fd(), name)})
	}
	if err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// ErrStuck means that a process of a template lives and does not answer: it is stopped, frozen, or hangs in the kernel.
var ErrStuck = errors.New("does not answer; the next step that needs it replaces it")

// describeStuck replaces the error of a timeout.
func describeStuck(err error, process string) error {
	if errors.Is(err, unix.EAGAIN) {
		return fmt.Errorf("%s %w", process, ErrStuck)
	}
	return err
}

func readStorageReply(fd int) (verdict, reason string, err error) {
	var reply storageReply
	buffer := make([]byte, binary.Size(reply)+1)
	n, err := unix.Read(fd, buffer)
	if err != nil {
		return "", "", err
	}
	if err := binary.Read(bytes.NewReader(buffer[:max(n, 0)]), binary.NativeEndian, &reply); err != nil {
		return "", "", fmt.Errorf("the zygote ended: %w", err)
	}
	if n != binary.Size(reply) || reply.Version != contract.Version || reply.Verdict < 0 ||
		int(reply.Verdict) >= len(storageVerdicts) {
		return "", "", fmt.Errorf("the zygote is of another gojail version; run: gojail reload")
	}
	text, _, _ := bytes.Cut(reply.Text[:], []byte{0})
	return storageVerdicts[reply.Verdict], string(text), nil
}
