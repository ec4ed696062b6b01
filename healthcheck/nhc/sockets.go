// SPDX-License-Identifier: Apache-2.0

package nhc

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/gojail/gojail/internal/procfs"
)

// sock is a socket as netstat -an shows it: tcp6 for version 6, ":::22", LISTEN, STREAM.
type sock struct {
	proto, local, remote, state, kind string
	uid                               uint32
	owned                             bool // whether uid is known
	inode                             string
}

// tcpStates are the kernel's states of TCP, include/net/tcp_states.h, by netstat's names.
var tcpStates = []string{"", "ESTABLISHED", "SYN_SENT", "SYN_RECV", "FIN_WAIT1", "FIN_WAIT2", "TIME_WAIT", "CLOSE",
	"CLOSE_WAIT", "LAST_ACK", "LISTEN", "CLOSING", "SYN_RECV"}

// readSockets returns the sockets in /proc/net: TCP, UDP and Unix.
func (s *System) readSockets() (all []sock, err error) {
	for _, proto := range []string{"tcp", "tcp6", "udp", "udp6", "unix"} {
		text, err := os.ReadFile(filepath.Join(s.Proc, "net", proto))
		if err != nil && (proto == "tcp" || proto == "unix") {
			return nil, errors.New("cannot list sockets")
		}
		_, rows, _ := strings.Cut(string(text), "\n") // without the header line
		for row := range strings.Lines(rows) {
			parse := parseInet
			if proto == "unix" {
				parse = parseUnix
			}
			if one, ok := parse(proto, strings.Fields(row)); ok {
				all = append(all, one)
			}
		}
	}
	return all, nil
}

// parseInet parses a row of /proc/net/tcp or udp.
func parseInet(proto string, f []string) (sock, bool) {
	if len(f) < 10 {
		return sock{}, false
	}
	local, ok := decodeAddress(f[1])
	remote, ok2 := decodeAddress(f[2])
	state, err := strconv.ParseUint(f[3], 16, 8)
	uid, err2 := strconv.ParseUint(f[7], 10, 32)
	if !ok || !ok2 || err != nil || err2 != nil {
		return sock{}, false
	}
	one := sock{proto: proto, local: local, remote: remote, uid: uint32(uid), owned: true, inode: f[9]}
	switch {
	case strings.HasPrefix(proto, "udp") && state != 1: // unconnected
	case int(state) < len(tcpStates):
		one.state = tcpStates[state]
	}
	return one, true
}

// decodeAddress decodes "0100007F:0016": words of 32 bits in the machine's byte order, and a
// port.
func decodeAddress(text string) (string, bool) {
	addr, port, _ := strings.Cut(text, ":")
	b, err := hex.DecodeString(addr)
	n, err2 := strconv.ParseUint(port, 16, 16)
	if err != nil || err2 != nil || len(b)%4 != 0 {
		return "", false
	}
	for i := 0; i < len(b); i += 4 {
		binary.BigEndian.PutUint32(b[i:], binary.NativeEndian.Uint32(b[i:]))
	}
	ip, ok := netip.AddrFromSlice(b)
	if !ok {
		return "", false
	}
	shown := strconv.FormatUint(n, 10)
	if n == 0 {
		shown = "*"
	}
	return ip.String() + ":" + shown, true
}

// parseUnix parses a row of /proc/net/unix, unix(7); flags 0x10000 mark a listener.
func parseUnix(_ string, f []string) (sock, bool) {
	if len(f) < 7 {
		return sock{}, false
	}
	one := sock{proto: "unix", inode: f[6]}
	one.kind = map[string]string{"0001": "STREAM", "0002": "DGRAM", "0005": "SEQPACKET"}[f[4]]
	switch {
	case f[3] == "00010000":
		one.state = "LISTENING"
	case f[5] == "03":
		one.state = "CONNECTED"
	}
	if len(f) > 7 {
		one.local = f[7]
	}
	return one, true
}

// parseSocket parses check_net_socket OPTIONS: there is at least one socket that meets all
// options, or with -! none.
func parseSocket(l *Line, args []string) (assertion, error) {
	opts, rest, err := parseOptions(args, "!0ad:l:n:p:r:s:t:u:e:E:")
	want, name, not := map[byte]*match{}, "", false
	for _, o := range opts {
		switch o.letter {
		case '!':
			not = true
		case '0':
			l.NonFatal = true
		case 'n':
			name = o.value + " "
		case 'e', 'E':
			l.noteChange(o.letter)
		case 'd', 'l', 'p', 'r', 's', 't', 'u':
			m, e := parseMatch(o.value)
			want[o.letter], err = m, errors.Join(err, e)
		}
	}
	switch {
	case err != nil:
		return nil, errors.New(strings.SplitN(err.Error(), "\n", 2)[0])
	case len(rest) > 0:
		return nil, fmt.Errorf("%.30q has no option before it", rest[0])
	case len(want) == 0:
		return nil, errors.New("an option that selects the socket is missing")
	}
	asked := name + "socket"
	for _, letter := range []byte("plrstud") {
		if m := want[letter]; m != nil {
			asked += fmt.Sprintf(" -%c %s", letter, m)
		}
	}
	return func(ctx context.Context, s *System) (string, error) {
		found, err := s.hasSocket(ctx, want)
		switch {
		case err != nil:
			return "", err
		case found && not:
			return "there is a " + asked, nil
		case !found && !not:
			return "there is no " + asked, nil
		}
		return "", nil
	}, nil
}

// hasSocket reports whether a socket matches.
func (s *System) hasSocket(ctx context.Context, want map[byte]*match) (bool, error) {
	all, err := s.readSockets()
	if err != nil {
		return false, err
	}
	inodes := map[string]bool{}
	is := func(letter byte, text string) bool { return want[letter] == nil || want[letter].matches(text) }
	for _, one := range all {
		if !is('p', one.proto) || !is('l', one.local) || !is('r', one.remote) || !is('s', one.state) ||
			!is('t', one.kind) {
			continue
		}
		if want['u'] != nil {
			owner := ""
			if one.owned {
				owner = s.findAccount(one.uid)
			}
			if !want['u'].matches(owner) {
				continue
			}
		}
		inodes["socket:["+one.inode+"]"] = true
	}
	if want['d'] == nil || len(inodes) == 0 {
		return len(inodes) > 0, nil
	}
	return s.isHeld(ctx, inodes, want['d'])
}

// isHeld reports whether a process with a matching name holds one of the sockets.
func (s *System) isHeld(ctx context.Context, inodes map[string]bool, name *match) (bool, error) {
	pids, err := procfs.ListNumbers(s.Proc)
	for _, pid := range pids {
		if !name.matches(procfs.ReadName(s.Proc, pid)) {
			continue
		}
		dir := filepath.Join(s.Proc, strconv.Itoa(pid), "fd")
		fds, _ := procfs.ListNumbers(dir)
		for _, fd := range fds {
			if target, _ := os.Readlink(filepath.Join(dir, strconv.Itoa(fd))); inodes[target] {
				return true, nil
			}
		}
		if ctx.Err() != nil {
			return false, errors.New("no time left to read all processes")
		}
	}
	return false, err
}
