// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os/exec"
	"strconv"
	"strings"
)

// history is what git says of the commit that is checked out.
type history struct {
	count   int      // of commits
	changed []string // files that the last commits changed
	note    string
}

// choose returns the slot of a commit, the number of the turn, which selects among alternatives, and the reason. A commit with an even
// number has the slot that the number of commits names. One with an odd number has, of the slots one of whose paths has changed, the one
// that the number names, and the slot of its number where none has. With an odd number of slots the even numbers alone come to all of them.
func choose(slots []slot, count int, changed []string) (chosen slot, turn int, why string) {
	var forward []slot
	var because []string
	for _, s := range slots {
		if path := s.findChanged(changed); path != "" {
			forward, because = append(forward, s), append(because, path)
		}
	}
	if half := count / 2; count%2 == 1 && len(forward) > 0 {
		i := half % len(forward)
		return forward[i], half / len(forward), because[i] + " has changed"
	}
	return slots[count%len(slots)], count / (2 * len(slots)), "by the number of commits"
}

// findChanged returns the first changed file that is below a path of the slot, or "".
func (s slot) findChanged(changed []string) string {
	for _, file := range changed {
		for _, path := range s.paths {
			if file == path || strings.HasSuffix(path, "/") && strings.HasPrefix(file, path) {
				return file
			}
		}
	}
	return ""
}

// readHistory returns the history, with the files that so many commits have changed. A clone without its history, which has the same number
// of commits each time, takes the number from the name of the commit; an exported tree, without git, has the number 0.
func readHistory(commits int) (h history) {
	head := git("rev-parse", "HEAD")
	switch {
	case head == "":
		h.note = "without git"
	case git("rev-parse", "--is-shallow-repository") != "false":
		number, _ := strconv.ParseUint(head[:8], 16, 32)
		h = history{count: int(number), note: "commit " + head[:10] + ", without its history"}
	default:
		h.count, _ = strconv.Atoi(git("rev-list", "--count", "HEAD"))
		h.changed = strings.Fields(git("log", "-m", "--name-only", "--format=", "-n", strconv.Itoa(commits)))
		h.note = fmt.Sprintf("commit %s, number %d", head[:10], h.count)
	}
	return h
}

// git returns what git prints, or "" where it fails.
func git(args ...string) string {
	out, err := exec.Command("git", args...).Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}
