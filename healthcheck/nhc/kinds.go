// SPDX-License-Identifier: Apache-2.0

package nhc

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// System is the node that is looked at, for one run.
type System struct {
	Proc, Sys, Etc string // "/proc", "/sys", "/etc"
	Now            func() time.Time
	// Command runs a program until ctx ends, and returns its standard output. An
	// *exec.ExitError has its exit code.
	Command func(ctx context.Context, name string, args ...string) ([]byte, error)
	pings   []string // paths of ping(8), the first one of root's is used; nil: the default paths

	list sync.Once // of processes, for all lines
	all  []process
	err  error
}

// kind is a check_* of NHC's: parse makes sense of its arguments, and may say more about the line.
type kind struct {
	domain Domain
	parse  func(l *Line, args []string) (look, error)
}

// kinds is every check that is understood.
var kinds = map[string]kind{
	"check_fs_mount":        {Node, mountKind("")},
	"check_fs_mount_rw":     {Node, mountKind("rw")},
	"check_fs_mount_ro":     {Node, mountKind("ro")},
	"check_fs_size":         {Storage, spaceKind("size", false)},
	"check_fs_free":         {Storage, spaceKind("free", false)},
	"check_fs_used":         {Storage, spaceKind("used", false)},
	"check_fs_inodes":       {Storage, spaceKind("size", true)},
	"check_fs_ifree":        {Storage, spaceKind("free", true)},
	"check_fs_iused":        {Storage, spaceKind("used", true)},
	"check_file_test":       {Storage, fileTest},
	"check_file_stat":       {Storage, fileStat},
	"check_file_contents":   {Storage, fileContents},
	"check_hw_cpuinfo":      {Node, cpuInfo},
	"check_hw_mem":          {Node, memoryTotal("MemTotal", "SwapTotal")},
	"check_hw_physmem":      {Node, memoryTotal("MemTotal")},
	"check_hw_swap":         {Node, memoryTotal("SwapTotal")},
	"check_hw_mem_free":     {Node, memoryFree("MemFree", "Buffers", "Cached", "SwapFree")},
	"check_hw_physmem_free": {Node, memoryFree("MemFree", "Buffers", "Cached")},
	"check_hw_swap_free":    {Node, memoryFree("SwapFree")},
	"check_hw_ib":           {Node, infiniband},
	"check_hw_eth":          {Node, ethernet},
	"check_ps_service":      {Node, service},
	"check_ps_daemon":       {Node, daemon},
	"check_ps_blacklist":    {Node, blacklist},
	"check_ps_loadavg":      {Node, loadAverage},
	"check_net_socket":      {Node, socket},
	"check_net_ping":        {Command, ping},
	"check_cmd_output":      {Command, commandOutput},
	"check_cmd_status":      {Command, commandStatus},
}

// arguments refuses too few and too many.
func arguments(args []string, least, most int) error {
	if len(args) < least || len(args) > most {
		return fmt.Errorf("has %d arguments; write %d to %d", len(args), least, most)
	}
	return nil
}
