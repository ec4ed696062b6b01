// SPDX-License-Identifier: Apache-2.0

package site_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/gojail/gojail/tests/site/wire"
	"github.com/gojail/gojail/tests/vm"
)

// The process that has booted a site can hold it after its tests, so that others run theirs there: a boot takes minutes. A
// machine's QEMU ends with the process that has started it, so the holder cuts power, and switches on, for them.

func holderPath(dir string) string { return filepath.Join(dir, "holder") }

// hold serves the orders "cut MACHINE" and "on MACHINE" until this process is interrupted.
func (s *site) hold() error {
	for _, g := range s.guests() {
		if g == nil || g.conn == nil {
			return errors.New("the site is not up: not held")
		}
		g.conn.Close() // QEMU serves one connection at a time
	}
	listener, err := net.Listen("unix", holderPath(s.machines.Dir))
	if err != nil {
		return fmt.Errorf("hold the site: %w", err)
	}
	interrupted, end := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer end()
	defer context.AfterFunc(interrupted, func() { listener.Close() })()
	fmt.Fprintf(os.Stderr, "The site is held until process %d is interrupted. Tests use it with GOJAIL_SITE=%s\n", os.Getpid(), s.machines.Dir)
	for {
		conn, err := listener.Accept()
		if err != nil {
			return nil // closed
		}
		order, _ := bufio.NewReader(conn).ReadString('\n')
		if err := s.obey(strings.TrimSpace(order)); err != nil {
			fmt.Fprintln(conn, err)
		}
		conn.Close()
	}
}

func (s *site) obey(order string) error {
	what, name, _ := strings.Cut(order, " ")
	for _, g := range s.guests() {
		switch {
		case g.machine.Name != name:
		case what == "on":
			return g.startMachine()
		case what == "cut":
			return g.cutPower()
		}
	}
	return fmt.Errorf("unknown order %q", order)
}

// askHolder has the holder of the site carry out an order.
func (s *site) askHolder(order string) error {
	conn, err := net.Dial("unix", s.holder)
	if err != nil {
		return fmt.Errorf("the holder of the site: %w", err)
	}
	defer conn.Close()
	fmt.Fprintln(conn, order)
	answer, err := io.ReadAll(conn)
	if err == nil && len(answer) > 0 {
		err = errors.New(string(answer))
	}
	return err
}

// attach returns the site that another process holds.
func attach(dir string) (*site, error) {
	s := &site{machines: &vm.Machines{Dir: dir}, holder: holderPath(dir)}
	for name, to := range map[string]**guest{"head": &s.head, "n1": &s.n1, "n2": &s.n2} {
		g := newGuest(s, vm.Machine{Name: name})
		g.last = int(time.Now().UnixNano()) // answers to an earlier process have other numbers
		if err := g.dial(); err != nil {
			return nil, err
		}
		r := g.run("", "true")
		if r.Code != 0 {
			return nil, fmt.Errorf("%v", r)
		}
		g.mu.Lock()
		g.boot = r.Boot
		g.mu.Unlock()
		*to = g
	}
	return s, nil
}

func newGuest(s *site, machine vm.Machine) *guest {
	return &guest{site: s, machine: machine, waiting: map[int]chan wire.Reply{}, booted: make(chan struct{})}
}
