// SPDX-License-Identifier: Apache-2.0

package site_test

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"sync"
)

// hub is the network of the machines: what one sends, all others get. It needs no network of this machine, and nobody
// else reaches it: QEMU's -netdev stream connects to a Unix socket, and sends the length of each frame before it.
type hub struct {
	path     string
	listener net.Listener

	mu    sync.Mutex
	ports map[*port]bool
}

// port is a machine's connection. A machine that reads no more loses frames, and holds up no other.
type port struct {
	conn   net.Conn
	frames chan []byte
}

func openHub(path string) (*hub, error) {
	listener, err := net.Listen("unix", path)
	if err != nil {
		return nil, fmt.Errorf("the machines' network: %w", err)
	}
	h := &hub{path: path, listener: listener, ports: map[*port]bool{}}
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return // closed
			}
			h.connect(conn)
		}
	}()
	return h, nil
}

func (h *hub) close() { h.listener.Close() }

// connect serves a connection until it fails.
func (h *hub) connect(conn net.Conn) {
	p := &port{conn: conn, frames: make(chan []byte, 1000)}
	h.mu.Lock()
	h.ports[p] = true
	h.mu.Unlock()
	go func() {
		for frame := range p.frames {
			if _, err := conn.Write(frame); err != nil {
				conn.Close() // and so the reader ends
			}
		}
	}()
	go func() {
		in := bufio.NewReader(conn)
		for {
			frame, err := readFrame(in)
			if err != nil {
				break
			}
			h.send(p, frame)
		}
		h.mu.Lock()
		delete(h.ports, p)
		close(p.frames)
		h.mu.Unlock()
		conn.Close()
	}()
}

// send gives a frame to all ports but one.
func (h *hub) send(from *port, frame []byte) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for p := range h.ports {
		if p != from {
			select {
			case p.frames <- frame:
			default:
			}
		}
	}
}

// readFrame returns the next frame with its length before it.
func readFrame(in io.Reader) ([]byte, error) {
	var length [4]byte
	if _, err := io.ReadFull(in, length[:]); err != nil {
		return nil, err
	}
	size := binary.BigEndian.Uint32(length[:])
	if size > 1<<17 {
		return nil, fmt.Errorf("a frame of %d bytes", size)
	}
	frame := make([]byte, 4+size)
	copy(frame, length[:])
	_, err := io.ReadFull(in, frame[4:])
	return frame, err
}
