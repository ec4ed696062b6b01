// SPDX-License-Identifier: Apache-2.0

package escape_test

import (
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/tests/harness"
)

// place is a jail or the node, and the user, that attacks run in.
type place struct {
	name    string
	user    string
	command []string // before attackPath and its arguments
	jail    string   // of victims that are to be attacked from here
}

func jailPlace(name, user, jail string, more ...string) place {
	return place{name: name, user: user, jail: jail, command: append([]string{"srun", "-Q", "-wn1", "--jail=" + jail}, more...)}
}

var (
	// Controls that are not jails of gojail.
	onNode     = place{name: "node, user", user: harness.Alice, jail: "open"}
	rootOnNode = place{name: "node, root", user: "root", jail: "open"}
	bareChroot = place{name: "bare chroot, root", user: "root", jail: "open",
		command: []string{"sh", "-c", `exec 9</; exec chroot /srv/jails/open "$@"`, "sh"}}
	// As switch_root(8) does it: the node's root stays below the jail's.
	overmounted = place{name: "mounted over /, root", user: "root", jail: "open",
		command: []string{"unshare", "-m", "sh", "-c", `cd /srv/jails/open && mount --bind . . && cd . && cd /srv/jails/open &&
mount -t proc proc proc && mount --move . / && exec chroot . "$@"`, "sh"}}

	openUser    = jailPlace("open, user", harness.Alice, "open")
	openRoot    = jailPlace("open, root", "root", "open")
	closedUser  = jailPlace("closed, user", harness.Alice, "closed")
	closedRoot  = jailPlace("closed, root", "root", "closed")
	closedSelf  = jailPlace("closed, --jail-root", harness.Alice, "closed", "--jail-root=self")
	closedRange = jailPlace("closed, --jail-root=range", harness.Alice, "closed", "--jail-root=range")
)

// verdict is the result of one attack in one place.
type verdict struct {
	word string // ESCAPED, HELD, or BROKEN: the attack did not finish
	text string
}

const (
	escaped = "ESCAPED"
	held    = "HELD"
	broken  = "BROKEN"
)

func (v verdict) String() string { return v.word + ": " + v.text }

// runAttacks runs attacks in a place and returns their verdicts. A step runs only some of them: on a slow machine
// all of them would exceed the timeout of one command.
func (s *site) runAttacks(t *testing.T, p place, names ...string) map[string]verdict {
	t.Helper()
	env := []string{"ATTACK_HANDLE=" + s.readHandle(t), "ATTACK_CGROUPS=" + s.listVictimCgroups()}
	verdicts := map[string]verdict{}
	for some := range slices.Chunk(names, 60/int(harness.Slow)) {
		args := slices.Concat(p.command, []string{attackPath, "run"}, some)
		r := s.Do(harness.Command{User: p.user, Env: env, Args: args})
		maps.Copy(verdicts, readVerdicts(r.Stdout))
		if slices.Contains(some, "hostname") {
			s.judgeHostname(t, verdicts) // before the next srun: the controller talks to it by the node's name
		}
		for _, name := range some {
			require.Contains(t, verdicts, name, "%s: no verdict: %s", p.name, r)
		}
	}
	return verdicts
}

// readVerdicts reads what the program of the attacks prints.
func readVerdicts(output string) map[string]verdict {
	verdicts := map[string]verdict{}
	for line := range strings.Lines(output) {
		name, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		word, text, _ := strings.Cut(rest, " ")
		if slices.Contains([]string{escaped, held, broken}, word) {
			verdicts[name] = verdict{word, text}
		}
	}
	return verdicts
}

// readHandle returns the handle of the file outside for open_by_handle_at(2), "" on a file system without
// handles.
func (s *site) readHandle(t *testing.T) string {
	t.Helper()
	h, _, err := unix.NameToHandleAt(unix.AT_FDCWD, s.Path(outside), 0)
	if err != nil {
		return ""
	}
	return fmt.Sprintf("%d:%s", h.Type(), hex.EncodeToString(h.Bytes()))
}

// jobCgroup is the name of a job's cgroup: job_N, or what newer releases make of it.
var jobCgroup = regexp.MustCompile(`/([^/]+)/step_`)

// listVictimCgroups returns the names of the victims' cgroups, each between blanks.
func (s *site) listVictimCgroups() string {
	names := " "
	for _, p := range s.Find(attackPath + " victim job") {
		text, _ := os.ReadFile(s.Path(fmt.Sprintf("/proc/%d/cgroup", p.Pid)))
		if match := jobCgroup.FindStringSubmatch(string(text)); match != nil {
			names += match[1] + " "
		}
	}
	return names
}

// startVictims starts one victim on the node and two in jobs in the jail, and ends them with the test.
func (s *site) startVictims(t *testing.T, jail string) {
	t.Helper()
	s.startVictim(t, "node", onNode)
	s.startVictim(t, "job-of-alice", jailPlace("", harness.Alice, jail))
	s.startVictim(t, "job-of-bob", jailPlace("", harness.Bob, jail))
}

// startVictim starts a victim with a tag in a place.
func (s *site) startVictim(t *testing.T, tag string, p place) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	cmd := s.Exec(ctx, harness.Command{User: p.user, Args: append(append([]string{}, p.command...), attackPath, "victim", tag)})
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		s.endProcesses("attack victim " + tag)
		cmd.Wait()
		cancel()
	})
	ready := make([]byte, len("ready\n"))
	_, err = io.ReadFull(out, ready)
	require.NoError(t, err, "the victim %s: %s", tag, &stderr)
}

// endProcesses ends every process of the cluster whose command line contains the text.
func (s *site) endProcesses(text string) {
	for _, p := range s.Find(text) {
		if !strings.HasPrefix(p.Command, "srun") {
			s.Root("kill", fmt.Sprint(p.Pid))
		}
	}
}
