// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/gojail/config"
	"github.com/gojail/gojail/gojail/mount"
	"github.com/gojail/gojail/gojail/sandbox"
	"github.com/gojail/gojail/gojail/subids"
	"github.com/gojail/gojail/internal/refusal"
)

func (r *request) openMounts() ([]mount.Tree, error) {
	state, c, j, err := r.openJail()
	if err != nil {
		return nil, err
	}
	list, err := config.ParseUserMounts(r.words["mounts"])
	if err != nil {
		return nil, refusal.Mark(err)
	}
	who, err := r.readCredentials()
	if err != nil {
		return nil, err
	}
	root, err := state.TemplateRoot(j.Name)
	if err != nil {
		return nil, err
	}
	trees, err := mount.OpenUserMounts(c, j, list, who, root, state.Path())
	if err != nil || r.words["data"] == "" {
		return trees, err
	}
	for i, t := range trees {
		if err := r.mapData(t.FD, list[i]); err != nil {
			for _, t := range trees {
				unix.Close(t.FD)
			}
			return nil, err
		}
	}
	return trees, nil
}

// mapData maps the files of a user's mount to root of the user namespace: a process with another id of the range can
// then connect to the user's own sockets in it only. A read-only mount may stay unmapped, except for file systems of
// this node's memory, where daemons have their sockets.
func (r *request) mapData(tree int, m config.UserMount) error {
	data, err := strconv.Atoi(r.words["data"])
	if err != nil {
		return fmt.Errorf("mounts: data=%q is not a descriptor", r.words["data"])
	}
	var fs unix.Statfs_t
	if err := mount.MapIDs(tree, data, m.Source); err != nil && (!m.Readonly || unix.Fstatfs(tree, &fs) != nil ||
		fs.Type == unix.TMPFS_MAGIC) {
		return err
	}
	return nil
}

// findIDs puts the user's range into the answer, for the launcher, which creates the user namespaces. It fails if an id
// of it is somebody else's, or if the name service does not answer.
func (r *request) findIDs() ([]mount.Tree, error) {
	who, err := r.readCredentials()
	if err != nil {
		return nil, err
	}
	c, err := r.loadConfig()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithDeadline(context.Background(), r.lastMoment())
	defer cancel()
	found, err := sandbox.FindIDs(ctx, subids.Host, c, who.UID)
	r.answer = fmt.Sprintf("%d %d %d", found.UID, found.GID, subids.Count)
	return nil, err
}

func (r *request) openRange() ([]mount.Tree, error) {
	state, c, j, err := r.openJail()
	if err != nil {
		return nil, err
	}
	ids, err := strconv.Atoi(r.words["range"])
	data, also := strconv.Atoi(r.words["data"])
	if err != nil || also != nil {
		return nil, fmt.Errorf("range: range=%q and data=%q are not descriptors", r.words["range"], r.words["data"])
	}
	template, err := state.Template(j.Name)
	if err != nil {
		return nil, err
	}
	return mount.OpenRange(c, j, state.Path(), template, ids, data)
}

func (r *request) readCredentials() (who mount.Credentials, err error) {
	number := func(name, text string) uint32 {
		n, e := strconv.ParseUint(text, 10, 32)
		if e != nil || n == 1<<32-1 {
			err = fmt.Errorf("%s: %s=%q is not a user or group id", r.verb, name, text)
		}
		return uint32(n)
	}
	who.UID = number("uid", r.words["uid"])
	who.GID = number("gid", r.words["gid"])
	if r.words["groups"] != "" {
		for _, text := range strings.Split(r.words["groups"], ",") {
			who.Groups = append(who.Groups, number("groups", text))
		}
	}
	return who, err
}
