// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// Collected is what became of a version in a collection.
type Collected struct {
	Version string
	Removed bool
	Why     string // it was not
}

// Collect removes the versions that nobody uses, but for keep versions beside the current one: first those that a
// rollback goes to, then the newest. survey is called for each, while nobody else changes the jail.
func (j *Jail) Collect(ctx context.Context, keep int, survey func() (*Survey, error)) (list []Collected, err error) {
	versions, spared, err := j.spare(keep)
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

// spare returns the versions of the jail, and why some are kept, used or not.
func (j *Jail) spare(keep int) (versions []*Version, spared map[string]string, err error) {
	if versions, err = j.Versions(); err != nil {
		return nil, nil, err
	}
	history, current, err := j.readHistory()
	if err != nil {
		return nil, nil, err
	}
	spared = map[string]string{}
	order := previous(history, current)
	slices.Reverse(order)
	for _, v := range slices.Backward(versions) {
		order = append(order, v.file)
	}
	was := func(file string) bool {
		return slices.ContainsFunc(history, func(s switching) bool { return s.From == file || s.To == file })
	}
	for _, v := range slices.Backward(versions) {
		if v.Current {
			break
		}
		if !was(v.file) {
			spared[v.file] = "it is newer than the current one, and has not been in use yet"
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

// removeUnused removes a version if nobody uses it, or returns why not.
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
	if why != "" {
		return why, nil
	}
	return "", err
}

// doubtsMost is the number of reasons that an error names.
const doubtsMost = 3

// Refuse returns an error if a version is in use, or if that cannot be told. The caller holds the jail's lock.
func (u *Survey) Refuse(j *Jail, v *Version) error {
	used, doubts := u.judge(j, v)
	if len(used) > 0 {
		return fmt.Errorf("in use on %s", shorten(used))
	}
	if len(doubts) > 0 {
		return fmt.Errorf("cannot tell whether it is in use: %s", shorten(doubts))
	}
	return nil
}

func shorten(list []string) string {
	if more := len(list) - doubtsMost; more > 0 {
		list = append(slices.Clone(list[:doubtsMost]), fmt.Sprintf("and %d more", more))
	}
	return strings.Join(list, "; ")
}
