// SPDX-License-Identifier: Apache-2.0

package subids

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/gojail/config"
	"github.com/gojail/gojail/internal/procfs"
)

// ReadProcesses returns the ids of processes, without those in user namespaces of their own, such as the jobs of --jail-root=range: these
// have ids of the range itself. proc is "/proc".
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
		dir := filepath.Join(proc, strconv.Itoa(pid))
		if namespace, err := os.Readlink(filepath.Join(dir, "ns/user")); err != nil || namespace != own {
			continue // it has ended, or root may not inspect it
		}
		status, err := os.ReadFile(filepath.Join(dir, "status"))
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ESRCH) {
			continue
		}
		if err != nil {
			return nil, nil, err
		}
		name := fmt.Sprint("process ", pid)
		uids = append(uids, parseIDs(string(status), name, "Uid:")...)
		gids = append(gids, parseIDs(string(status), name, "Gid:", "Groups:")...)
	}
	return uids, gids, nil
}

// parseIDs returns the ids in lines of proc_pid_status(5).
func parseIDs(status, name string, keys ...string) (owners []Owner) {
	for text := range strings.Lines(status) {
		for _, key := range keys {
			list, found := strings.CutPrefix(text, key)
			if !found {
				continue
			}
			for word := range strings.FieldsSeq(list) {
				if id, err := config.ParseID(word); err == nil {
					owners = append(owners, Owner{id, name})
				}
			}
		}
	}
	return owners
}
