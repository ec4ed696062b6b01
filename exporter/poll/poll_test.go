// SPDX-License-Identifier: Apache-2.0

package poll

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/gojail/gojail/internal/slurm"
)

// fakeSlurm notes what it is asked, and fails as the test wants.
type fakeSlurm struct {
	asked       []string
	controllers []slurm.Controller
	fails       map[string]error
	odd         slurm.Odd
}

func (f *fakeSlurm) ask(name string) error {
	f.asked = append(f.asked, name)
	return f.fails[name]
}

func (f *fakeSlurm) FindRelease(context.Context) error { return nil }
func (f *fakeSlurm) Ping(context.Context) ([]slurm.Controller, error) {
	return f.controllers, f.ask(Ping)
}
func (f *fakeSlurm) Nodes(context.Context) (*slurm.Nodes, error) {
	return &slurm.Nodes{List: []slurm.Node{{Name: "n1"}}, Odd: f.odd}, f.ask(Nodes)
}
func (f *fakeSlurm) Jobs(context.Context) (*slurm.Jobs, error) { return &slurm.Jobs{}, f.ask(Jobs) }
func (f *fakeSlurm) Diag(context.Context) (*slurm.Diag, error) { return &slurm.Diag{}, f.ask(Diag) }

type test struct {
	*Poller
	slurm *fakeSlurm
	log   *strings.Builder
	now   time.Time
}

func newTest(host string, up ...bool) *test {
	t := &test{slurm: &fakeSlurm{fails: map[string]error{}}, log: &strings.Builder{}, now: time.Unix(1e9, 0)}
	t.setControllers(up...)
	t.Poller = &Poller{Slurm: t.slurm, Host: host, MaxAge: 5 * time.Minute, Log: slog.New(slog.NewTextHandler(t.log, nil)), Now: func() time.Time { return t.now }}
	return t
}

func (t *test) setControllers(up ...bool) {
	t.slurm.controllers = nil
	for i, is := range up {
		t.slurm.controllers = append(t.slurm.controllers, slurm.Controller{Host: string(rune('a' + i)), Up: is})
	}
}

// poll asks once, a minute after the last time, and returns the commands.
func (t *test) poll() string {
	t.slurm.asked = nil
	t.now = t.now.Add(time.Minute)
	t.Poll(context.Background())
	return strings.Join(t.slurm.asked, " ")
}

// present returns the data that is shown.
func (t *test) present() string {
	v := t.View()
	present := map[string]bool{Nodes: v.Nodes != nil, Jobs: v.Jobs != nil, Diag: v.Diag != nil}
	return strings.Join(slices.DeleteFunc(slices.Clone(Sources), func(name string) bool { return !present[name] }), " ")
}

func TestOneController(t *testing.T) {
	p := newTest("a", true)
	assert.False(t, p.View().Asked)
	assert.Equal(t, "ping nodes jobs", p.poll())
	for range 3 {
		assert.Equal(t, "nodes jobs diag", p.poll(), "it is not pinged any more")
	}
	assert.True(t, p.View().Up)
	assert.Equal(t, "nodes jobs diag", p.present())
}

// TestNoMoreThanThreeCommands: whatever controllers there are and whatever fails.
func TestNoMoreThanThreeCommands(t *testing.T) {
	for _, up := range [][]bool{{true}, {true, true}, {false, true}, {true, false, true}, {false, false}} {
		for _, host := range []string{"a", "b", "login"} {
			p := newTest(host, up...)
			for i := range 32 {
				p.slurm.fails = map[string]error{}
				for bit, name := range Sources {
					if i>>bit&1 == 1 {
						p.slurm.fails[name] = errors.New("away")
					}
				}
				commands := strings.Fields(p.poll())
				assert.LessOrEqual(t, len(commands), commandsMost, "%v %s %v", up, host, commands)
				assert.NotEmpty(t, commands)
			}
		}
	}
}

// TestTwoControllers: the host of the controller that is in charge asks, also after another one took over.
func TestTwoControllers(t *testing.T) {
	a, b := newTest("a", true, true), newTest("b", true, true)
	assert.Equal(t, "ping nodes jobs", a.poll())
	assert.Equal(t, "nodes jobs diag", a.poll())
	assert.Equal(t, "ping nodes jobs", a.poll(), "they take turns")
	for range 3 {
		assert.Equal(t, "ping", b.poll(), "the standby is quiet")
		assert.False(t, b.View().Active)
		assert.Empty(t, b.present())
	}
	a.setControllers(false, true)
	b.setControllers(false, true)
	assert.Equal(t, "nodes jobs diag", a.poll(), "Slurm's commands ask the other controller")
	assert.Equal(t, "ping", a.poll())
	assert.Equal(t, "ping", a.poll())
	assert.False(t, a.View().Active)
	assert.Empty(t, a.present())
	assert.Contains(t, a.log.String(), "active=false")
	b.poll()
	b.poll()
	assert.True(t, b.View().Active && b.View().Up)
	assert.NotEmpty(t, b.present())

	a.setControllers(false, false)
	b.setControllers(false, false)
	for range 2 {
		a.poll()
		b.poll()
	}
	assert.True(t, a.View().Active && !a.View().Up, "one of the hosts may be away: both say that the controller is")
	assert.True(t, b.View().Active && !b.View().Up)
}

// TestControllerAway: what is known gets old and then goes; slurmctld is not asked for more until it answers.
func TestControllerAway(t *testing.T) {
	p := newTest("login", true)
	p.poll()
	p.poll()
	away := errors.New("Unable to contact slurm controller")
	p.slurm.fails = map[string]error{Nodes: away, Jobs: &slurm.TimeoutError{Name: "squeue"}, Diag: away}
	p.setControllers(false)
	assert.Equal(t, "nodes jobs diag", p.poll())
	v := p.View()
	assert.False(t, v.Up)
	assert.True(t, v.Sources[Nodes].Failing)
	assert.Equal(t, map[string]int{Timeout: 1}, v.Sources[Jobs].Failures)
	assert.Equal(t, map[string]int{Command: 1}, v.Sources[Diag].Failures)
	assert.Equal(t, time.Minute, p.now.Sub(v.Sources[Nodes].At))
	assert.Equal(t, "ping", p.poll())
	assert.Equal(t, "nodes jobs diag", p.present(), "it is shown, with its age")
	lines := strings.Count(p.log.String(), "\n")
	for range 4 {
		assert.Equal(t, "ping", p.poll())
	}
	assert.Empty(t, p.present(), "it is too old")
	assert.Equal(t, lines, strings.Count(p.log.String(), "\n"), "it is told once")

	p.slurm.fails = nil
	p.setControllers(true)
	assert.Equal(t, "ping nodes jobs", p.poll())
	assert.True(t, p.View().Up)
	assert.Contains(t, p.log.String(), "Slurm answers again")
}

// TestOutputThatCannotBeParsed: slurmctld is there, its data is not.
func TestOutputThatCannotBeParsed(t *testing.T) {
	p := newTest("login", true)
	bad := &slurm.ReadError{Name: "squeue", Err: errors.New("garbled")}
	p.slurm.fails = map[string]error{Nodes: bad, Jobs: bad, Diag: bad}
	p.poll()
	p.poll()
	assert.True(t, p.View().Up)
	assert.Empty(t, p.present())
	assert.Equal(t, map[string]int{Output: 1}, p.View().Sources[Diag].Failures)
}

// TestOddRecords: they are counted in each interval, and told of once.
func TestOddRecords(t *testing.T) {
	p := newTest("login", true)
	p.slurm.odd = slurm.Odd{Count: 2, First: "no State: \"n1\""}
	p.poll()
	p.poll()
	v := p.View()
	assert.Equal(t, 4, v.Sources[Nodes].Odd)
	assert.Zero(t, v.Sources[Jobs].Odd)
	assert.NotNil(t, v.Nodes)
	assert.Equal(t, 1, strings.Count(p.log.String(), "cannot be read"), p.log)
	p.slurm.odd = slurm.Odd{}
	p.poll()
	p.slurm.odd = slurm.Odd{Count: 1}
	p.poll()
	assert.Equal(t, 2, strings.Count(p.log.String(), "cannot be read"), p.log)
}
