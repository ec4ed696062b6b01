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

// message is one packet. A question goes to everybody, an answer to who asked.
type message struct {
	Gojail string `json:"gojail"` // what it is
	Job    string `json:"job"`
	Step   string `json:"step"`
	Node   int    `json:"node"` // who sends it
	Done   bool   `json:"done"` // the sender has heard from all
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
	done  []bool        // the nodes that have heard from all
	over  chan struct{} // closed when this one and all others have
}

// meet asks until everybody has heard from everybody, or the context ends. It
// answers all the time, and closes the endpoints.
func meet(ctx context.Context, step Step, endpoints []*endpoint) {
	m := &meeting{step: step, endpoints: endpoints, done: make([]bool, step.Nodes.Len()), over: make(chan struct{})}
	for _, e := range endpoints {
		e.answered[step.Node] = true
		m.readers.Add(2)
		go m.listen(e, e.ask)
		go m.listen(e, e.hear)
	}
	m.askAll(ctx)
	for _, e := range endpoints {
		e.close()
	}
	m.readers.Wait()
	m.forget()
}

// forget drops the errors of packets to nodes that have heard us by another one.
func (m *meeting) forget() {
	for _, e := range m.endpoints {
		for node, done := range m.done {
			if done || node == m.step.Node && !slices.Contains(e.answered, false) {
				delete(e.failed, node)
			}
		}
	}
}

// longestPause is that between two questions. Tasks of a step start seconds apart on
// busy nodes, so that the last question should be late; but a thousand nodes that
// wait for one must not flood the rails.
func longestPause(nodes int) time.Duration {
	return min(max(5*question/2, time.Duration(nodes)*2*time.Millisecond), 10*question)
}

// askAll slows down, and asks until the context ends.
func (m *meeting) askAll(ctx context.Context) {
	pause := question
	for {
		m.askOnce()
		select {
		case <-ctx.Done():
			return
		case <-m.over:
			for range 3 { // those that missed it would wait until their time is up
				m.askOnce()
				time.Sleep(question / 4)
			}
			return
		case <-time.After(pause):
			pause = min(2*pause, longestPause(len(m.done)))
		}
	}
}

func (m *meeting) askOnce() {
	for _, e := range m.endpoints {
		m.send(e, asks, e.all, m.step.Node)
	}
}

// send keeps the error of the last packet to a node; our own stands for all.
func (m *meeting) send(e *endpoint, what string, to netip.AddrPort, node int) {
	_, err := e.ask.WriteToUDPAddrPort(m.message(what), to)
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if err != nil {
		e.failed[node] = err
	} else {
		delete(e.failed, node)
	}
}

func (m *meeting) message(what string) []byte {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	text, _ := json.Marshal(message{what, m.step.Job, m.step.ID, m.step.Node, m.heardAll()})
	return text
}

// heardAll is asked with the mutex.
func (m *meeting) heardAll() bool {
	return !slices.ContainsFunc(m.endpoints, func(e *endpoint) bool { return slices.Contains(e.answered, false) })
}

// listen ends when the socket is closed, or its interface goes.
func (m *meeting) listen(e *endpoint, conn *net.UDPConn) {
	defer m.readers.Done()
	packet := make([]byte, 1024)
	for {
		n, from, err := conn.ReadFromUDPAddrPort(packet)
		if err != nil {
			return
		}
		var got message
		if json.Unmarshal(packet[:n], &got) == nil && m.ours(e, got, from.Addr()) {
			m.take(e, got, from)
		}
	}
}

// ours refuses other steps, nodes that the step has not, and other rails that share
// the link: each rail has a subnet of its own. Its name may differ, where nodes with
// other cards have other policies.
func (m *meeting) ours(e *endpoint, got message, from netip.Addr) bool {
	return got.Job == m.step.Job && got.Step == m.step.ID && e.own.Contains(from.Unmap().WithZone("")) &&
		got.Node >= 0 && got.Node < len(m.done) && got.Node != m.step.Node
}

func (m *meeting) take(e *endpoint, got message, from netip.AddrPort) {
	if got.Gojail == asks { // if the answer is lost, the other one asks again
		m.send(e, answers, from, got.Node)
	}
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if got.Gojail == answers {
		e.answered[got.Node] = true
	}
	m.done[got.Node] = m.done[got.Node] || got.Done
	m.done[m.step.Node] = m.heardAll()
	if !slices.Contains(m.done, false) {
		select {
		case <-m.over:
		default:
			close(m.over)
		}
	}
}
