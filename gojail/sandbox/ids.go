// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/gojail/gojail/gojail/config"
	"github.com/gojail/gojail/gojail/node"
	"github.com/gojail/gojail/gojail/subids"
)

// FindIDs returns the range of a user for --jail-root=range. It fails if an id of the range is known to be somebody
// else's, and if the name service or Slurm does not answer before the context ends: an id that nobody could be asked
// about may be an account's.
func FindIDs(ctx context.Context, source subids.Source, c *config.Config, uid uint32) (r subids.IDRange, err error) {
	name, err := source.LookUp(ctx, "passwd", uid)
	if err != nil {
		return r, fmt.Errorf("--jail-root=range: cannot ask the name service for uid %d: %w; try again, or ask your "+
			"administrator to correct it", uid, err)
	}
	if name == "" {
		name = strconv.FormatUint(uint64(uid), 10)
	}
	t, err := ReadIDs(ctx, source, c)
	if err != nil {
		return r, fmt.Errorf("--jail-root=range: %w", err)
	}
	r, err = t.Find(uid, name)
	if err == nil {
		err = r.Probe(ctx, source)
	}
	return r, err
}

// ReadIDs reads which ids of this node are in use. If the name service may have accounts that it does not list, ReadIDs
// adds the ids of processes of this node and those of jobs of the cluster.
func ReadIDs(ctx context.Context, source subids.Source, c *config.Config) (*subids.Table, error) {
	t, err := subids.Read(ctx, source)
	if err != nil || len(t.Unlisted) == 0 {
		return t, err
	}
	uids, gids, err := subids.ReadProcesses("/proc")
	if err != nil {
		return nil, err
	}
	t.AddOwners(uids, gids)
	squeue := node.FindSlurmCommand(c, "squeue")
	if squeue == "" {
		return t, nil
	}
	text, err := runSqueue(ctx, squeue, c.Slurm.Conf, "--all", "--local", "-o", "%A %U %G")
	if err != nil {
		return nil,
			fmt.Errorf("cannot ask Slurm for the users of jobs, as %s of nsswitch.conf may not list all accounts: "+
				"%w; try again", strings.Join(t.Unlisted, ", "), err)
	}
	t.AddOwners(parseJobOwners(text))
	return t, nil
}

// parseJobOwners parses lines JOB UID GID.
func parseJobOwners(text string) (uids, gids []subids.Owner) {
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) != 3 {
			continue
		}
		uid, err := config.ParseID(fields[1])
		gid, gidErr := config.ParseID(fields[2])
		if err == nil && gidErr == nil {
			uids, gids = append(uids, subids.Owner{ID: uid, Name: "job " + fields[0]}),
				append(gids, subids.Owner{ID: gid, Name: "job " + fields[0]})
		}
	}
	return uids, gids
}
