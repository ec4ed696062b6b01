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

// munge makes a credential, as slurmd does for each message. One without a
// daemon that answers takes the node from the cluster within minutes.
func munge(ctx context.Context, h *check.Host, s *check.Settings) check.Finding {
	socket := s.Daemons.Munge
	if socket == "none" || socket == "" && !present(filepath.Join(h.Roots.Etc, "munge/munge.key")) {
		return check.Found(check.NotApplicable, "munge is not used here")
	}
	if socket == "" {
		socket = filepath.Join(h.Roots.Run, "munge/munge.socket.2")
	}
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	err := mungeEncode(ctx, socket)
	switch {
	case err == nil:
		return check.Found(check.OK, "munged makes credentials")
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, context.DeadlineExceeded), ctx.Err() != nil:
		// Users may ask it as often as they like: it may be busy with that, and not sick.
		return check.Found(check.Unknown, "munged does not answer")
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ECONNREFUSED):
		return check.Found(check.Fail, "munged does not run")
	case errors.Is(err, unix.EACCES):
		return check.Found(check.Unknown, "munged's socket may not be used")
	}
	return check.Found(check.Fail, "%s", line(err.Error()))
}

// The header of munged's local protocol, version 4: magic, version, type, retries, length.
const (
	mungeMagic   = 0x00606d4b
	mungeVersion = 4
	mungeRequest = 2 // encode
	mungeAnswer  = 3
)

// mungeAgain is until munged is tried again whose queue is full (unix(7), EAGAIN).
const mungeAgain = 10 * time.Millisecond

// mungeEncode asks for a credential with the daemon's own choices and no payload,
// over a socket of its own: cipher, MAC, compression and realm as munged likes, any
// user and group may decode it.
func mungeEncode(ctx context.Context, socket string) error {
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", socket)
	for errors.Is(err, unix.EAGAIN) && ctx.Err() == nil { // many others ask at this moment
		time.Sleep(mungeAgain)
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
		return errors.New("munged's answer is not understood: it ends early")
	}
	if binary.BigEndian.Uint32(answer) != mungeMagic || answer[4] != mungeVersion || answer[5] != mungeAnswer {
		return errors.New("munged's answer is not understood")
	}
	if code := answer[len(head)]; code != 0 {
		return fmt.Errorf("munged refuses to make a credential (code %d)", code)
	}
	return nil
}

// daemons looks for processes by name; a user's process of that name is none.
func daemons(_ context.Context, h *check.Host, s *check.Settings) check.Finding {
	if len(s.Daemons.Processes) == 0 {
		return check.Found(check.NotApplicable, "no daemons are configured")
	}
	all, err := listProcesses(h)
	if err != nil {
		return check.Found(check.Unknown, "cannot list processes: %v", err)
	}
	if len(all) == 0 {
		return check.Found(check.Unknown, "%s shows no processes", h.Roots.Proc)
	}
	var p problems
	for _, name := range s.Daemons.Processes {
		short := name[:min(len(name), 15)] // TASK_COMM_LEN
		if !slices.ContainsFunc(all, func(one process) bool {
			return one.Name == short && one.State != 'Z' && one.State != 'X' && one.system()
		}) {
			p.failed("%.30s does not run", name)
		}
	}
	return p.finding("all configured daemons run")
}
