// SPDX-License-Identifier: Apache-2.0

package slurm

import (
	"errors"
	"io"
	"regexp"
	"strings"
	"sync"
)

// Controller is a slurmctld of the cluster.
type Controller struct {
	Host string // as in slurm.conf
	Up   bool   // whether it answers
}

// controllersMost is the limit of the controllers of a cluster.
const controllersMost = 16

var pingLine = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^Slurmctld\([^)]*\) at (\S+) is (UP|DOWN)`)
})

// readPing reads the output of scontrol ping: the controllers in the order in which they take over.
func readPing(r io.Reader) (list []Controller, err error) {
	err = eachLine(r, func(line string) {
		if m := pingLine().FindStringSubmatch(line); m != nil && len(list) < controllersMost {
			list = append(list, Controller{toLabel(m[1]), m[2] == "UP"})
		}
	})
	if len(list) == 0 && err == nil {
		err = errors.New("there is no controller in it")
	}
	return list, err
}

// IsActive reports whether the host must watch the cluster: it has no slurmctld, or has the first one that answers, or
// none answers.
func IsActive(list []Controller, host string) bool {
	short := func(name string) string { first, _, _ := strings.Cut(name, "."); return first }
	own := -1
	for i, c := range list {
		if short(c.Host) == short(host) {
			own = i
		}
	}
	for i, c := range list {
		if c.Up {
			return own < 0 || own == i
		}
	}
	return true
}
