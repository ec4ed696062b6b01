// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gojail/gojail/healthcheck/check"
	"github.com/gojail/gojail/healthcheck/run"
)

// recoverRecord makes the record of a drain anew whose record is lost: on a node without a persistent /var it goes with
// the reboot that repairs the node, which would stay drained with this program's own reason. Slurm is asked once per
// boot, and again in the next run if it does not answer.
func (r *Reconciler) recoverRecord(ctx context.Context, results []run.Result, o *Outcome) error {
	switch {
	case r.History.Searched || r.DryRun:
		return nil
	case o.Record != nil || r.Healthy == "yes":
		r.History.Searched = true // nothing is lost
		return nil
	}
	node, err := r.showOnce(ctx)
	if err != nil {
		return nil // a controller that does not answer is no fault of a node that wants nothing of it
	}
	if record := findLostRecord(node, results); record != nil {
		if err := r.writeRecord(ctx, record); err != nil {
			return fmt.Errorf("cannot write the record of the drain again that was lost: %w", err)
		}
		o.Record = record
		o.Decision = Decision{None, "it is drained by check " + record.Check +
			", and the record of that, which was lost, is made again"}
	}
	r.History.Searched = true
	return nil
}

// findLostRecord returns the record of the drain that the node has in Slurm, or nil if somebody else may have set it,
// or another node's program did: check nccl drains from another machine. Whoever drains a node as root in the words of
// an earlier reason does that later than its id says.
func findLostRecord(node *nodeState, results []run.Result) *Record {
	name, _, _ := strings.Cut(node.Reason, ": ")
	id, isWhole := findID(node.Reason)
	own := slices.ContainsFunc(results, func(r run.Result) bool {
		return r.Check.Name == name &&
			r.Check.Severity == check.Drain
	})
	if !node.hasState("DRAIN") || !isOurs(node.Reason) || !isWhole || !own || !wasSetWith(id, node.stamp) {
		return nil
	}
	return &Record{ID: id, Check: name, Reason: node.Reason, Stamp: node.stamp}
}

// findID returns the id in a reason, and whether the reason is as formatReason writes it to its end.
func findID(reason string) (id string, isWhole bool) {
	_, rest, _ := strings.Cut(reason, idStart)
	id, rest, closed := strings.Cut(rest, ")")
	return id, closed && (rest == "" || strings.HasPrefix(rest, wasStart))
}

const (
	timeDigits   = 8
	randomDigits = 4
	// setWithin is the most that a reason's time, which is slurmctld's, may differ from that in its id, which is the
	// node's.
	setWithin = time.Minute
)

// newID returns the id of a drain: its time in seconds since 1970, and a random number.
func newID(now time.Time) (string, error) {
	var b [randomDigits / 2]byte
	if _, err := rand.Read(b[:]); err != nil {
		return "", err
	}
	return fmt.Sprintf("%0*x", timeDigits, now.Unix()) + hex.EncodeToString(b[:]), nil
}

// wasSetWith reports whether root set a reason at the time of its id, by the stamp as Slurm shows it, in the node's
// time zone.
func wasSetWith(id, stamp string) bool {
	text, isRoot := strings.CutPrefix(stamp, "root@")
	set, err := time.ParseInLocation("2006-01-02T15:04:05", text, time.Local)
	if !isRoot || err != nil || len(id) != timeDigits+randomDigits {
		return false
	}
	seconds, err := strconv.ParseInt(id[:timeDigits], 16, 64)
	return err == nil && set.Sub(time.Unix(seconds, 0)).Abs() <= setWithin
}
