// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/healthcheck/check"
)

// munge requests a credential, as slurmd does for each message. Without a daemon that answers,
// the node drops out of the cluster within minutes.
func munge(ctx context.Context, h *check.Host, s *check.Settings) check.Finding {
	socket := s.Daemons.Munge
	if socket == "none" || socket == "" && !mayExist(filepath.Join(h.Roots.Etc, "munge/munge.key")) {
		return check.NewFinding(check.NotApplicable, "munge is not used on this node")
	}
	if socket == "" {
		socket = filepath.Join(h.Roots.Run, "munge/munge.socket.2")
	}
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	err := requestCredential(ctx, socket)
	switch {
	case err == nil:
		return check.NewFinding(check.OK, "munged creates credentials")
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, context.DeadlineExceeded), ctx.Err() != nil:
		// Users may send any number of requests: munged may be busy rather than faulty.
		return check.NewFinding(check.Unknown, "munged does not answer")
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ECONNREFUSED):
		return check.NewFinding(check.Fail, "munged is not running")
	case errors.Is(err, unix.EACCES):
		return check.NewFinding(check.Unknown, "no permission to use munged's socket")
	}
	return check.NewFinding(check.Fail, "%s", formatLine(err.Error()))
}

// Header of munged's local protocol, version 4: magic, version, type, retries, length.
const (
	mungeMagic   = 0x00606d4b
	mungeVersion = 4
	mungeRequest = 2 // encode
	mungeAnswer  = 3
)

// mungeRetry is the interval between attempts to connect to munged while its queue is full
// (unix(7), EAGAIN).
const mungeRetry = 10 * time.Millisecond

// requestCredential requests a credential over munged's socket, with an empty payload and the
// daemon's default cipher, MAC, compression and realm; any user and group may decode it.
func requestCredential(ctx context.Context, socket string) error {
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", socket)
	for errors.Is(err, unix.EAGAIN) && ctx.Err() == nil { // many other clients send requests at this moment
		time.Sleep(mungeRetry)
		conn, err = (&net.Dialer{}).DialContext(ctx, "unix", socket)
	}
	if err != nil {
		return err
	}
	defer conn.Close()
	if deadline, ok := ctx.Deadline(); ok {
		conn.SetDeadline(deadline)
	}
	body := []byte{1, 1, 1, 0}                             // cipher, MAC and compression: the default; no realm
	body = binary.BigEndian.AppendUint32(body, 0)          // ttl: the default
	body = binary.BigEndian.AppendUint32(body, 0xffffffff) // any user
	body = binary.BigEndian.AppendUint32(body, 0xffffffff) // any group
	body = binary.BigEndian.AppendUint32(body, 0)          // bytes of payload
	head := binary.BigEndian.AppendUint32(nil, mungeMagic)
	head = append(head, mungeVersion, mungeRequest, 0)
	head = binary.BigEndian.AppendUint32(head, uint32(len(body)))
	if _, err := conn.Write(append(head, body...)); err != nil {
		return err
	}
	answer := make([]byte, len(head)+1)
	if _, err := io.ReadFull(conn, answer); err != nil {
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return err
		}
		return errors.New("munged's answer is truncated")
	}
	if binary.BigEndian.Uint32(answer) != mungeMagic || answer[4] != mungeVersion || answer[5] != mungeAnswer {
		return errors.New("cannot parse munged's answer")
	}
	if code := answer[len(head)]; code != 0 {
		return fmt.Errorf("munged refuses to create a credential (code %d)", code)
	}
	return nil
}

// daemons checks that the configured processes run, by name; a user's process of the same name
// does not count.
func daemons(_ context.Context, h *check.Host, s *check.Settings) check.Finding {
	if len(s.Daemons.Processes) == 0 {
		return check.NewFinding(check.NotApplicable, "no daemons are configured")
	}
	all, err := listProcesses(h)
	if err != nil {
		return check.NewFinding(check.Unknown, "cannot list processes: %v", err)
	}
	if len(all) == 0 {
		return check.NewFinding(check.Unknown, "%s shows no processes", h.Roots.Proc)
	}
	var p problems
	for _, name := range s.Daemons.Processes {
		short := name[:min(len(name), 15)] // TASK_COMM_LEN
		if !slices.ContainsFunc(all, func(one process) bool {
			return one.Name == short && one.State != 'Z' && one.State != 'X' && one.isSystem()
		}) {
			p.addFailure("%.30s is not running", name)
		}
	}
	return p.buildFinding("all configured daemons are running")
}
