// SPDX-License-Identifier: Apache-2.0

package site_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"sync"
	"time"

	"github.com/gojail/gojail/tests/site/wire"
	"github.com/gojail/gojail/tests/vm"
)

// guest is one machine of the site. Its disk stays when it is off.
type guest struct {
	site    *site
	machine vm.Machine
	cut     context.CancelFunc
	ended   <-chan error

	mu      sync.Mutex
	conn    net.Conn
	last    int
	waiting map[int]chan wire.Reply
	boot    string        // of the agent that was heard last
	booted  chan struct{} // closed when another boot is heard of
}

// result is what a script said.
type result struct {
	wire.Reply
	where, script string
}

func (r result) String() string {
	return fmt.Sprintf("%s: %s\nexit status %d\n%s\n%s", r.where, r.script, r.Code, r.Stdout, r.Stderr)
}

// switchOn starts the machine's QEMU.
func (g *guest) switchOn() error {
	if g.site.holder != "" {
		if err := g.site.askHolder("on " + g.machine.Name); err != nil {
			return err
		}
		return g.dial()
	}
	if err := g.startMachine(); err != nil {
		return err
	}
	return g.dial()
}

// startMachine starts the machine's QEMU in this process.
func (g *guest) startMachine() (err error) {
	ctx, cut := context.WithCancel(g.site.power)
	g.cut = cut
	g.ended, err = g.site.machines.Start(ctx, g.machine)
	return err
}

// dial connects to the machine's agent.
func (g *guest) dial() error {
	for end := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		conn, err := net.Dial("unix", g.agentPath())
		if err == nil {
			g.mu.Lock()
			g.conn = conn
			g.mu.Unlock()
			go g.read(conn)
			return nil
		}
		if time.Now().After(end) {
			return fmt.Errorf("connect to %s: %w", g.machine.Name, err)
		}
	}
}

func (g *guest) agentPath() string {
	return filepath.Join(g.site.machines.Dir, g.machine.Name+".agent")
}

// cutPower kills the machine's QEMU.
func (g *guest) cutPower() error {
	if g.site.holder != "" {
		return g.site.askHolder("cut " + g.machine.Name)
	}
	g.cut()
	<-g.ended
	return nil
}

// read distributes what the agent says until the connection ends, or another boot: what ran before has no answer then.
func (g *guest) read(conn net.Conn) {
	in := bufio.NewReader(conn)
	for {
		line, err := in.ReadBytes('\n')
		var reply wire.Reply
		if err == nil {
			err = json.Unmarshal(line, &reply)
		}
		g.mu.Lock()
		switch {
		case err != nil:
			g.failWaiting("switched off")
		case reply.ID == 0:
			if g.boot != "" {
				g.failWaiting("started anew")
			}
			if g.boot != reply.Boot {
				g.boot = reply.Boot
				close(g.booted)
				g.booted = make(chan struct{})
			}
		default:
			if waiting := g.waiting[reply.ID]; waiting != nil {
				waiting <- reply
				delete(g.waiting, reply.ID)
			}
		}
		g.mu.Unlock()
		if err != nil {
			conn.Close()
			return
		}
	}
}

// failWaiting ends the scripts that run.
func (g *guest) failWaiting(why string) {
	for id, waiting := range g.waiting {
		waiting <- wire.Reply{ID: id, Code: -1, Stderr: g.machine.Name + " was " + why}
	}
	clear(g.waiting)
}

// waitBoot returns a function that waits for a boot after now.
func (g *guest) waitBoot(limit time.Duration) func() error {
	g.mu.Lock()
	booted := g.booted
	g.mu.Unlock()
	return func() error {
		select {
		case <-booted:
			return nil
		case err := <-g.ended:
			return errors.Join(fmt.Errorf("%s ended; its console:\n%s", g.machine.Name, g.site.machines.LastConsoleLines(g.machine.Name)), err)
		case <-time.After(limit):
			return fmt.Errorf("%s is not up after %v; its console:\n%s", g.machine.Name, limit, g.site.machines.LastConsoleLines(g.machine.Name))
		}
	}
}

// start begins a script as a user, "" is root, and returns where its result comes.
func (g *guest) start(user, script string) <-chan wire.Reply {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.last++
	waiting := make(chan wire.Reply, 1)
	line, _ := json.Marshal(wire.Request{ID: g.last, User: user, Script: script}) // strings and a number
	if _, err := g.conn.Write(append(line, '\n')); err != nil {
		waiting <- wire.Reply{Code: -1, Stderr: err.Error()}
		return waiting
	}
	g.waiting[g.last] = waiting
	return waiting
}

// run runs a script as a user, "" is root, at most half an hour.
func (g *guest) run(user, script string) result {
	where := g.machine.Name
	if user != "" {
		where = user + "@" + where
	}
	const limit = 30 * time.Minute
	select {
	case reply := <-g.start(user, script):
		return result{reply, where, script}
	case <-time.After(limit):
		return result{wire.Reply{Code: -1, Stderr: fmt.Sprintf("not done after %v", limit)}, where, script}
	}
}
