// SPDX-License-Identifier: Apache-2.0

package nhc

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// System is the checked node, for one run.
type System struct {
	Proc, Sys, Etc string // "/proc", "/sys", "/etc"
	Now            func() time.Time
	// Command runs a program until ctx ends, and returns its standard output. An
	// *exec.ExitError holds its exit code.
	Command func(ctx context.Context, name string, args ...string) ([]byte, error)
	Jobs    Jobs     // nil: no job has a device of the node
	pings   []string // paths of ping(8), of which the first one owned by root is used; nil: the default paths

	list sync.Once // list of processes, shared by all lines
	all  []process
	err  error
}

// Jobs are the jobs of the node, which may have devices that assertions name. If a device is
// not seen, exists looks for it again. A Remark is returned for a device that no job has, and
// that another check reports.
type Jobs interface {
	// HaveInterface reports whether a job has a network interface, or it has come back.
	HaveInterface(name string, exists func() bool) (bool, error)
	// HaveRDMA reports the same of an RDMA device.
	HaveRDMA(name string, exists func() bool) (bool, error)
	// LeaveDown reports whether an RDMA device that is there may be down: it belongs to a VF that a job has, or
	// that waits for one.
	LeaveDown(rdma string) bool
}

// kind is a check_* of NHC: parse parses its arguments, and may set further fields of the line.
type kind struct {
	domain Domain
	parse  func(l *Line, args []string) (assertion, error)
}

// kinds are all supported checks.
var kinds = map[string]kind{
	"check_fs_mount":        {Node, newMountParser("")},
	"check_fs_mount_rw":     {Node, newMountParser("rw")},
	"check_fs_mount_ro":     {Node, newMountParser("ro")},
	"check_fs_size":         {Storage, newSpaceParser("size", false)},
	"check_fs_free":         {Storage, newSpaceParser("free", false)},
	"check_fs_used":         {Storage, newSpaceParser("used", false)},
	"check_fs_inodes":       {Storage, newSpaceParser("size", true)},
	"check_fs_ifree":        {Storage, newSpaceParser("free", true)},
	"check_fs_iused":        {Storage, newSpaceParser("used", true)},
	"check_file_test":       {Storage, parseFileTest},
	"check_file_stat":       {Storage, parseFileStat},
	"check_file_contents":   {Storage, parseFileContents},
	"check_hw_cpuinfo":      {Node, parseCPUInfo},
	"check_hw_mem":          {Node, newMemoryTotalParser("MemTotal", "SwapTotal")},
	"check_hw_physmem":      {Node, newMemoryTotalParser("MemTotal")},
	"check_hw_swap":         {Node, newMemoryTotalParser("SwapTotal")},
	"check_hw_mem_free":     {Node, newMemoryFreeParser("MemFree", "Buffers", "Cached", "SwapFree")},
	"check_hw_physmem_free": {Node, newMemoryFreeParser("MemFree", "Buffers", "Cached")},
	"check_hw_swap_free":    {Node, newMemoryFreeParser("SwapFree")},
	"check_hw_ib":           {Node, parseInfiniBand},
	"check_hw_eth":          {Node, parseEthernet},
	"check_ps_service":      {Node, parseService},
	"check_ps_daemon":       {Node, parseDaemon},
	"check_ps_blacklist":    {Node, parseBlacklist},
	"check_ps_loadavg":      {Node, parseLoadAverage},
	"check_net_socket":      {Node, parseSocket},
	"check_net_ping":        {Command, parsePing},
	"check_cmd_output":      {Command, parseCommandOutput},
	"check_cmd_status":      {Command, parseCommandStatus},
}

// checkArguments returns an error for too few or too many arguments.
func checkArguments(args []string, least, most int) error {
	if len(args) < least || len(args) > most {
		return fmt.Errorf("has %d arguments; write %d to %d", len(args), least, most)
	}
	return nil
}
