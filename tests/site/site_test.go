// SPDX-License-Identifier: Apache-2.0

package site_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gojail/gojail/tests/harness"
	"github.com/gojail/gojail/tests/site/wire"
	"github.com/gojail/gojail/tests/vm"
)

const repository = "../.."

// bootTime is how long an emulated machine may take from power on to its agent: six minutes were seen on a busy one.
const bootTime = 20 * time.Minute

// site is a cluster of three machines: head has slurmctld, slurmdbd, MariaDB and the NFS server; n1 and n2 have
// slurmd, and n2 the second slurmctld.
type site struct {
	machines     *vm.Machines
	hub          *hub
	power        context.Context // of all machines
	stop         context.CancelFunc
	head, n1, n2 *guest

	holder string // of a site that another process holds: where it listens
}

// common is the site that all tests share, each of which leaves it as it was.
var common harness.Shared[*site]

func TestMain(m *testing.M) { os.Exit(common.Main(m)) }

// sharedSite returns the site with gojail installed and idle nodes.
func sharedSite(t *testing.T) *site {
	t.Helper()
	for _, path := range []string{"build/cache/site", "build/site/new"} {
		if _, err := os.Stat(filepath.Join(repository, path)); err != nil {
			t.Skipf("needs %s: make site", path)
		}
	}
	s := common.Get(t, func() (*site, error) {
		if dir := os.Getenv("GOJAIL_SITE"); dir != "" {
			return attach(dir)
		}
		s, err := newSite()
		if err == nil {
			err = s.bringUp(t)
		}
		return s, err
	})
	s.requireIdle(t)
	return s
}

func (s *site) guests() []*guest { return []*guest{s.head, s.n1, s.n2} }
func (s *site) nodes() []*guest  { return []*guest{s.n1, s.n2} }

// newSite prepares disks and network, and switches nothing on.
func newSite() (*site, error) {
	s := &site{}
	s.power, s.stop = context.WithCancel(context.Background())
	var err error
	if s.machines, err = vm.NewMachines(s.power); err != nil {
		return nil, err
	}
	if s.hub, err = openHub(filepath.Join(s.machines.Dir, "hub")); err != nil {
		return s, err
	}
	share := filepath.Join(s.machines.Dir, "site")
	if err := makeShare(share); err != nil {
		return s, err
	}
	for _, m := range []struct {
		to                **guest
		name, disk, ident string
		memory, cards     int
	}{
		{&s.head, "head", "head", "01", 1024, 0},
		{&s.n1, "n1", "node", "11", 2048, 1},
		{&s.n2, "n2", "node", "12", 2048, 1},
	} {
		disk := filepath.Join(s.machines.Dir, m.name+".ext4")
		if err := runHere("cp", "--sparse=always", filepath.Join(repository, "build/cache/site", m.disk+".ext4"), disk); err != nil {
			return s, err
		}
		g := newGuest(s, vm.Machine{Name: m.name, Disk: disk, Memory: m.memory, Cards: m.cards})
		g.machine.Arguments = append(vm.ShareDirectory("site", share),
			"-netdev", "stream,id=net,server=off,addr.type=unix,addr.path="+s.hub.path+",reconnect-ms=1000",
			"-device", "virtio-net-pci,netdev=net,romfile=,mac=52:54:00:00:00:"+m.ident,
			"-device", "virtio-serial-pci", "-chardev", "socket,id=agent,server=on,wait=off,path="+g.agentPath(),
			"-device", "virtserialport,chardev=agent,name="+wire.Port)
		*m.to = g
	}
	return s, nil
}

// makeShare makes the directory that all machines mount at /site: the agent and the packages.
func makeShare(dir string) error {
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	build := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-o", filepath.Join(dir, "agent"), "./agent")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build the agent: %w: %s", err, out)
	}
	packages, err := filepath.Glob(filepath.Join(repository, "build/site/*/*.deb"))
	if err != nil {
		return err
	}
	for _, path := range packages {
		to := filepath.Join(dir, filepath.Base(filepath.Dir(path)))
		if err := errors.Join(os.MkdirAll(to, 0o755), runHere("cp", path, to)); err != nil {
			return err
		}
	}
	return nil
}

func runHere(args ...string) error {
	if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", strings.Join(args, " "), err, out)
	}
	return nil
}

// Stop switches all machines off, unless they are another process's.
func (s *site) Stop() error {
	if s.holder != "" {
		return nil
	}
	if os.Getenv("GOJAIL_SITE_HOLD") != "" {
		if err := s.hold(); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}
	s.stop()
	for _, g := range s.guests() {
		if g != nil && g.ended != nil {
			<-g.ended
		}
	}
	if s.hub != nil {
		s.hub.close()
	}
	if os.Getenv("GOJAIL_SITE_KEEP") == "" {
		s.machines.Close()
	}
	return nil
}
