// SPDX-License-Identifier: Apache-2.0

package job

import (
	"context"
	"encoding/json"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"
)

// message is one packet: a question to all nodes, or an answer to the sender of a question.
type message struct {
	Gojail string `json:"gojail"` // kind of the message
	Job    string `json:"job"`
	Step   string `json:"step"`
	Node   int    `json:"node"` // sending node
	Done   bool   `json:"done"` // whether the sender has heard from all nodes
}

const (
	asks    = "who is there"
	answers = "I am"
)

// meeting is the exchange of a step's nodes.
type meeting struct {
	step      Step
	endpoints []*endpoint
	readers   sync.WaitGroup

	mutex sync.Mutex
	done  []bool        // by node: whether the node has heard from all nodes
	over  chan struct{} // closed when all nodes have heard from all nodes
}

// meetPeers asks until all nodes have heard from all nodes, or the context ends. It answers
// questions meanwhile, and closes the endpoints.
func meetPeers(ctx context.Context, step Step, endpoints []*endpoint) {
	m := &meeting{step: step, endpoints: endpoints, done: make([]bool, step.Nodes.Len()), over: make(chan struct{})}
	for _, e := range endpoints {
		e.answered[step.Node] = true
		m.readers.Add(2)
		go m.listen(e, e.ask)
		go m.listen(e, e.hear)
	}
	m.askUntilDone(ctx)
	for _, e := range endpoints {
		e.close()
	}
	m.readers.Wait()
	m.forgetErrors()
}

// forgetErrors removes the errors of packets to nodes that have heard this node by another
// packet.
func (m *meeting) forgetErrors() {
	for _, e := range m.endpoints {
		for node, done := range m.done {
			if done || node == m.step.Node && !slices.Contains(e.answered, false) {
				delete(e.failed, node)
			}
		}
	}
}

// limitPause returns the longest pause between two questions. Tasks of a step start seconds
// apart on busy nodes, so the last question should be late; but a thousand nodes that wait
// for one must not flood the rails.
func limitPause(nodes int) time.Duration {
	return min(max(5*askInterval/2, time.Duration(nodes)*2*time.Millisecond), 10*askInterval)
}

// askUntilDone asks repeatedly, with increasing pauses, until all nodes are done or the
// context ends.
func (m *meeting) askUntilDone(ctx context.Context) {
	pause := askInterval
	for {
		m.askOnce()
		select {
		case <-ctx.Done():
			return
		case <-m.over:
			for range 3 { // nodes that missed it would wait until their deadline
				m.askOnce()
				time.Sleep(askInterval / 4)
			}
			return
		case <-time.After(pause):
			pause = min(2*pause, limitPause(len(m.done)))
		}
	}
}

func (m *meeting) askOnce() {
	for _, e := range m.endpoints {
		m.sendMessage(e, asks, e.all, m.step.Node)
	}
}

// sendMessage sends a packet and stores the error of the last packet to a node. The entry of
// the own node stands for all nodes.
func (m *meeting) sendMessage(e *endpoint, what string, to netip.AddrPort, node int) {
	_, err := e.ask.WriteToUDPAddrPort(m.encodeMessage(what), to)
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if err != nil {
		e.failed[node] = err
	} else {
		delete(e.failed, node)
	}
}

func (m *meeting) encodeMessage(what string) []byte {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	text, _ := json.Marshal(message{what, m.step.Job, m.step.ID, m.step.Node, m.hasHeardAll()})
	return text
}

// hasHeardAll reports whether all nodes have answered on all endpoints. The caller holds the
// mutex.
func (m *meeting) hasHeardAll() bool {
	return !slices.ContainsFunc(m.endpoints, func(e *endpoint) bool { return slices.Contains(e.answered, false) })
}

// listen handles packets until the socket is closed or its interface is removed.
func (m *meeting) listen(e *endpoint, conn *net.UDPConn) {
	defer m.readers.Done()
	packet := make([]byte, 1024)
	for {
		n, from, err := conn.ReadFromUDPAddrPort(packet)
		if err != nil {
			return
		}
		var got message
		if json.Unmarshal(packet[:n], &got) == nil && m.isOurs(e, got, from.Addr()) {
			m.handleMessage(e, got, from)
		}
	}
}

// isOurs reports whether a message is of this step and rail. It rejects other steps, unknown
// nodes, and other rails on the same link: each rail has its own subnet. Rails are not
// compared by name, which may differ between nodes with different cards.
func (m *meeting) isOurs(e *endpoint, got message, from netip.Addr) bool {
	return got.Job == m.step.Job && got.Step == m.step.ID && e.own.Contains(from.Unmap().WithZone("")) &&
		got.Node >= 0 && got.Node < len(m.done) && got.Node != m.step.Node
}

func (m *meeting) handleMessage(e *endpoint, got message, from netip.AddrPort) {
	if got.Gojail == asks { // if the answer is lost, the other node asks again
		m.sendMessage(e, answers, from, got.Node)
	}
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if got.Gojail == answers {
		e.answered[got.Node] = true
	}
	m.done[got.Node] = m.done[got.Node] || got.Done
	m.done[m.step.Node] = m.hasHeardAll()
	if !slices.Contains(m.done, false) {
		select {
		case <-m.over:
		default:
			close(m.over)
		}
	}
}
