// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Collected is the result of a collection for one version.
type Collected struct {
	Version string
	Removed bool
	Why     string // why the version was not removed
}

// Collect removes the versions that no node uses, except the current one and keep others: first those to which a
// rollback would lead, then the newest. It calls survey for each version to remove, under the jail's lock. In any case
// it removes the work items of killed commands.
func (j *Jail) Collect(ctx context.Context, keep int, survey func() (*Survey, error)) (list []Collected, err error) {
	if err := j.withLock(ctx, func() error { return nil }); err != nil {
		return nil, err
	}
	versions, spared, err := j.listSpared(keep)
	if err != nil {
		return nil, err
	}
	for _, v := range versions {
		if v.Current {
			continue
		}
		c := Collected{Version: v.Version, Why: spared[v.file]}
		if c.Why == "" {
			if c.Why, err = j.removeUnused(ctx, v.Version, survey); err != nil {
				return list, err
			}
			c.Removed = c.Why == ""
		}
		list = append(list, c)
	}
	return list, nil
}

// listSpared returns the versions of the jail, and by name the reason why a version is kept even if nobody uses it.
func (j *Jail) listSpared(keep int) (versions []*Version, spared map[string]string, err error) {
	if versions, err = j.Versions(); err != nil {
		return nil, nil, err
	}
	history, current, err := j.readHistory()
	if err != nil {
		return nil, nil, err
	}
	spared = map[string]string{}
	order := listPrevious(history, current)
	slices.Reverse(order)
	for _, v := range slices.Backward(versions) {
		order = append(order, v.file)
	}
	wasCurrent := func(file string) bool {
		return slices.ContainsFunc(history, func(s switching) bool { return s.From == file || s.To == file })
	}
	for _, v := range slices.Backward(versions) {
		if v.Current {
			break
		}
		if !wasCurrent(v.file) {
			spared[v.file] = "it is newer than the current one, and was not in use yet"
		}
	}
	for _, file := range order {
		exists := slices.ContainsFunc(versions, func(v *Version) bool { return v.file == file && !v.Current })
		if spared[file] == "" && exists && keep > 0 {
			spared[file] = "kept for a rollback (--keep)"
			keep--
		}
	}
	return versions, spared, nil
}

// removeUnused removes a version if no node uses it, or returns the reason why it is kept.
func (j *Jail) removeUnused(ctx context.Context, id string, survey func() (*Survey, error)) (why string, err error) {
	err = j.Remove(ctx, id, func(v *Version) error {
		u, err := survey()
		if err != nil {
			return err
		}
		if err := u.Refuse(j, v); err != nil {
			why = err.Error()
			return err
		}
		return nil
	})
	var copied *copiedError
	if errors.As(err, &copied) {
		why = err.Error()
	}
	if why != "" {
		return why, nil
	}
	return "", err
}

// reasonsMost is the maximum number of reasons that an error names.
const reasonsMost = 3

// Refuse returns an error if a version is in use, or if that cannot be found out. The caller holds the jail's lock.
func (u *Survey) Refuse(j *Jail, v *Version) error {
	used, doubts := u.findUses(j, v)
	if len(used) > 0 {
		return fmt.Errorf("in use on %s", joinReasons(used))
	}
	if len(doubts) > 0 {
		return fmt.Errorf("cannot determine whether it is in use: %s", joinReasons(doubts))
	}
	return nil
}

// joinReasons joins the first reasonsMost elements of a list, and counts the others.
func joinReasons(list []string) string {
	if more := len(list) - reasonsMost; more > 0 {
		list = append(slices.Clone(list[:reasonsMost]), fmt.Sprintf("and %d more", more))
	}
	return strings.Join(list, "; ")
}
