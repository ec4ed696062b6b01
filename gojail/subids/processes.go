// SPDX-License-Identifier: Apache-2.0

package subids

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/gojail/gojail/gojail/config"
	"github.com/gojail/gojail/internal/procfs"
)

// ReadProcesses returns the ids of processes. It leaves out processes in user namespaces of their own, such as jobs
// with --jail-root=range, which have ids of the range itself. proc is "/proc".
func ReadProcesses(proc string) (uids, gids []Owner, err error) {
	own, err := os.Readlink(filepath.Join(proc, "self/ns/user"))
	if err != nil {
		return nil, nil, fmt.Errorf("cannot read the user namespace of this process: %w", err)
	}
	pids, err := procfs.ListNumbers(proc)
	if err != nil {
		return nil, nil, err
	}
	for _, pid := range pids {
		path := filepath.Join(proc, strconv.Itoa(pid), "ns/user")
		if namespace, err := os.Readlink(path); err != nil || namespace != own {
			continue // it has ended, or root may not inspect it
		}
		status, err := procfs.ReadStatus(proc, pid, "Uid", "Gid", "Groups")
		if procfs.HasEnded(err) {
			continue
		}
		if err != nil {
			return nil, nil, err
		}
		name := fmt.Sprint("process ", pid)
		uids = append(uids, parseIDs(status[0], name)...)
		gids = append(gids, parseIDs(status[1]+" "+status[2], name)...)
	}
	return uids, gids, nil
}

// parseIDs returns the ids in a list.
func parseIDs(list, name string) (owners []Owner) {
	for word := range strings.FieldsSeq(list) {
		if id, err := config.ParseID(word); err == nil {
			owners = append(owners, Owner{id, name})
		}
	}
	return owners
}
