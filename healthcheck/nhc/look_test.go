// SPDX-License-Identifier: Apache-2.0

package nhc

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/internal/nstest"
)

const mountTable = `/dev/sda1 / ext4 rw,relatime 0 0
server:/home /home nfs4 ro,vers=4.2 0 0
tmpfs /my\040disk tmpfs rw 0 0
server:/home /home nfs4 rw,vers=3,addr=10.0.0.1 0 0
`

// Two sockets with four cores and two threads each.
const cpuTable = "processor\t: 0\nphysical id\t: 0\nsiblings\t: 8\ncpu cores\t: 4\n\nprocessor\t: 1\nphysical id\t: 1\nsiblings\t: 8\ncpu cores\t: 4\n"

const memoryTable = "MemTotal:       1000000 kB\nMemFree:         100000 kB\nBuffers:          50000 kB\nCached:           50000 kB\nSwapTotal:       200000 kB\nSwapFree:        150000 kB\n"

const tcpTable = `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 00000000:0016 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4711 1
   1: 0100007F:1F90 0200007F:C350 01 00000000:00000000 00:00000000 00000000  1000        0 4712 1
`

const unixTable = `Num       RefCount Protocol Flags    Type St Inode Path
0000000000000000: 00000002 00000000 00010000 0001 01 4713 /run/munge/munge.socket.2
`

// node returns a small machine in a directory.
func node(t *testing.T) (*System, string) {
	dir := t.TempDir()
	s := &System{Proc: dir + "/proc", Sys: dir + "/sys", Etc: dir + "/etc", Now: time.Now,
		Command: func(ctx context.Context, name string, args ...string) ([]byte, error) {
			return exec.CommandContext(ctx, name, args...).Output()
		}}
	for path, text := range map[string]string{
		"proc/self/mounts": mountTable, "proc/cpuinfo": cpuTable, "proc/meminfo": memoryTable, "proc/net/tcp": tcpTable, "proc/net/unix": unixTable,
		"proc/net/dev":   "Inter-|\n face |bytes\n    lo: 1 2\n  eth0: 1 2\n",
		"proc/loadavg":   "3.90 10.00 0.10 1/200 4711\n",
		"etc/passwd":     "root:x:0:0::/:/bin/sh\nalice:x:1000:1000::/:/bin/sh\n",
		"etc/group":      "root:x:0:\nstaff:x:50:alice\n",
		"proc/1/cmdline": "/sbin/init\x00splash\x00", "proc/1/comm": "init\n",
		"proc/2/cmdline": "", "proc/2/comm": "kthreadd\n",
		"proc/9/cmdline": "/usr/sbin/sshd\x00-D\x00", "proc/9/comm": "sshd\n",
		"proc/10/cmdline": "python\x00train.py\x00", "proc/10/comm": "python\n",
		"sys/class/infiniband_mad/abi_version":           "5\n",
		"sys/class/infiniband/mlx5_0/ports/1/state":      "4: ACTIVE\n",
		"sys/class/infiniband/mlx5_0/ports/1/phys_state": "5: LinkUp\n",
		"sys/class/infiniband/mlx5_0/ports/1/rate":       "400 Gb/sec (4X NDR)\n",
		"sys/class/infiniband/mlx5_1/ports/1/state":      "1: DOWN\n",
		"sys/class/infiniband/mlx5_1/ports/1/phys_state": "3: Disabled\n",
		"sys/class/infiniband/mlx5_1/ports/1/rate":       "100 Gb/sec\n",
		"file": "first line\n  mode = fast\nlast\n", "empty": "",
	} {
		path = filepath.Join(dir, path)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	}
	require.NoError(t, os.Mkdir(dir+"/proc/9/fd", 0o755))
	require.NoError(t, os.Symlink("socket:[4711]", dir+"/proc/9/fd/3"))
	require.NoError(t, os.Chown(dir+"/proc/10", 1000, 1000))
	require.NoError(t, os.Symlink("file", dir+"/link"))
	require.NoError(t, os.Chmod(dir+"/file", 0o640))
	require.NoError(t, os.Chtimes(dir+"/file", time.Now(), time.Now().Add(-time.Hour)))
	return s, dir
}

// assertions are checks with their faults: "" none, "?" cannot be determined.
var assertions = []struct{ check, fault string }{
	{"check_fs_mount -f /", ""},
	{"check_fs_mount /home server:/home nfs4", ""},
	{"check_fs_mount /home 'server:*' nfs '/vers=3/'", "type of /home: nfs4 instead of nfs"},
	{"check_fs_mount -f /home -t '!nfs*'", "type of /home: nfs4 instead of !nfs*"},
	{"check_fs_mount -t nfs4 -s server:/data -f /home", "source of /home: server:/home instead of server:/data"},
	{"check_fs_mount -o '/(^|,)vers=3(,|$)/' -o '!/noac/' -f /home -f /", "options of /: rw,relatime instead of /(^|,)vers=3(,|$)/"},
	{"check_fs_mount -f '/my disk'", ""},
	{"check_fs_mount /scratch", "/scratch is not mounted"},
	{"check_fs_mount_rw /home", ""},
	{"check_fs_mount_rw -t ext4 /", ""},
	{"check_fs_mount_ro -f /home", "options of /home: rw,vers=3,addr=10.0.0.1 instead of /(^|,)ro(,|$)/"},
	{"check_fs_mount_rw -F DIR/auto", "DIR/auto is not mounted"},
	{"check_fs_size / 1k", ""},
	{"check_fs_size / 1E", "/ has less than 1E in all"},
	{"check_fs_size / '' 1k", "/ has more than 1k in all"},
	{"check_fs_free / 0%", ""},
	{"check_fs_free / 101%", "/ has less than 101% free"},
	{"check_fs_free / 1EB", "/ has less than 1EB free"},
	{"check_fs_free /", ""},
	{"check_fs_used / 101%", ""},
	{"check_fs_used / 0", "/ has 0 or more used"},
	{"check_fs_used / 0%", "/ has 0% or more used"},
	{"check_fs_free /scratch 3%", "?/scratch is not a mount point, which NHC ignores"},
	{"check_fs_inodes /none 1", "?/none is not a mount point, which NHC ignores"},
	{"check_fs_ifree /none 1", "?/none is not a mount point, which NHC ignores"},
	{"check_fs_iused /none 1", "?/none is not a mount point, which NHC ignores"},
	{"check_file_test -e -f -r -w -s DIR/file", ""},
	{"check_file_test -f DIR/file DIR", "test -f DIR fails"},
	{"check_file_test -d -x DIR", ""},
	{"check_file_test -x DIR/file", "test -x DIR/file fails"},
	{"check_file_test -s DIR/empty", "test -s DIR/empty fails"},
	{"check_file_test -h -L DIR/link", ""},
	{"check_file_test -L DIR/file", "test -L DIR/file fails"},
	{"check_file_test -f DIR/link", ""},
	{"check_file_test -a DIR/nothing", "test -a DIR/nothing fails"},
	{"check_file_test -! -e DIR/nothing", ""},
	{"check_file_test -! -e DIR/file", "test -e DIR/file does not fail"},
	{"check_file_test -c -r -w -O -G /dev/null", ""},
	{"check_file_test -b /dev/null", "test -b /dev/null fails"},
	{"check_file_test -k -u -g -p -S DIR/file", "test -k DIR/file fails"},
	{"check_file_test -N DIR/file", "test -N DIR/file fails"},
	{"check_file_stat -m 0640 -M 0600 -u 0 -g 0 -U root -G root DIR/file", ""},
	{"check_file_stat -m 0644 DIR/file", "DIR/file: its mode is not 0644"},
	{"check_file_stat -M 0644 DIR/file", "DIR/file: its mode lacks some of 0644"},
	{"check_file_stat -u 1 DIR/file", "DIR/file: its uid is not 1"},
	{"check_file_stat -U alice DIR/file", "DIR/file: its owner is not alice"},
	{"check_file_stat -G staff DIR/file", "DIR/file: its group is not staff"},
	{"check_file_stat -t 1 -T 0x3 /dev/null", ""},
	{"check_file_stat -t 1 -T 5 /dev/null", "/dev/null: its minor number is not 5"},
	{"check_file_stat -o 60 -n 7200 -N 60 DIR/file", ""},
	{"check_file_stat -n 60 DIR/file", "DIR/file: its mtime is older than 60 s"},
	{"check_file_stat -o 7200 DIR/file", "DIR/file: its mtime is not older than 7200 s"},
	{"check_file_stat -O 60 DIR/file", "DIR/file: its ctime is not older than 60 s"},
	{"check_file_stat -M 0777 DIR/link", ""}, // the link itself
	{"check_file_stat -u 0 DIR/nothing", "DIR/nothing: no such file or directory"},
	{"check_file_contents DIR/file 'mode = fast' '/^last$/' '!/slow/'", ""},
	{"check_file_contents DIR/file '/first/' 'mode*slow'", "DIR/file has no line that matches mode*slow"},
	{"check_file_contents DIR/file '!*fast'", "DIR/file has a line that matches *fast"},
	{"check_file_contents DIR/empty '!/x/'", ""},
	{"check_file_contents DIR/nothing x", "cannot read DIR/nothing: no such file or directory"},
	{"check_file_contents /dev/zero x", "?/dev/zero is not a regular file"},
	{"check_hw_cpuinfo 2 8 16", ""},
	{"check_hw_cpuinfo '' 8", ""},
	{"check_hw_cpuinfo 1", "the node has 2 CPU sockets instead of 1"},
	{"check_hw_cpuinfo 2 8 8", "the node has 16 CPU threads instead of 8"},
	{"check_hw_physmem 1000000 1000000", ""},
	{"check_hw_physmem 1g 1gb", "MemTotal is less than 1g"},
	{"check_hw_physmem 1g 1gb 5%", ""},
	{"check_hw_physmem 900m 900m", "MemTotal is more than 900m"},
	{"check_hw_physmem 900m 900m 100m", ""},
	{"check_hw_mem 1200000 1200000", ""},
	{"check_hw_mem 2g 3g", "MemTotal+SwapTotal is less than 2g"},
	{"check_hw_swap 1b 1TB", ""},
	{"check_hw_swap 0 0", "SwapTotal is more than 0"},
	{"check_hw_mem_free 350000", ""},
	{"check_hw_mem_free 350001", "MemFree+Buffers+Cached+SwapFree is less than 350001"},
	{"check_hw_physmem_free 200000", ""},
	{"check_hw_physmem_free 200001", "MemFree+Buffers+Cached is less than 200001"},
	{"check_hw_swap_free 150000", ""},
	{"check_hw_swap_free 150001", "SwapFree is less than 150001"},
	{"check_hw_ib", ""},
	{"check_hw_ib 400", ""},
	{"check_hw_ib 400 mlx5_0:1", ""},
	{"check_hw_ib 200", "no InfiniBand port is up with rate 200"},
	{"check_hw_ib 100 mlx5_1:1", "no InfiniBand port is up with rate 100 mlx5_1:1"},
	{"check_hw_eth eth0", ""},
	{"check_hw_eth eth", "network device eth does not exist"},
	{"check_ps_service sshd", ""},
	{"check_ps_service -u root -S sshd", ""},
	{"check_ps_service -u 0 sshd", ""},
	{"check_ps_service -u alice sshd", "sshd owned by alice is not running"},
	{"check_ps_service -u '!root' sshd", "sshd owned by !root is not running"},
	{"check_ps_service -u '!0' sshd", "sshd owned by !0 is not running"},
	{"check_ps_service -d init -r initscripts", ""},
	{"check_ps_service -f -m '*train.py*' training", ""},
	{"check_ps_service -m '*train.py*' training", "training is not running"},
	{"check_ps_service -k python", "python is running"},
	{`check_ps_service -m '/^\\\[kthreadd\\\]$/' kthreadd`, ""},
	{"check_ps_service cron", "cron is not running"},
	{"check_ps_daemon train", ""},
	{"check_ps_daemon python alice train.py", ""},
	{"check_ps_daemon python root", "python owned by root is not running"},
	{"check_ps_daemon python '!root'", "python owned by !root is not running"}, // a name here
	{"check_ps_blacklist python '!root'", "python owned by !root is running"},
	{"check_ps_blacklist sshd '!root'", ""},
	{"check_ps_blacklist cron", ""},
	{"check_ps_loadavg 4", ""},
	{"check_ps_loadavg 3", "the 1-minute load average is 3 or more"},
	{"check_ps_loadavg '' 10 30", "the 5-minute load average is 10 or more"},
	{"check_net_socket -p tcp -s LISTEN -l '0.0.0.0:22' -d sshd", ""},
	{"check_net_socket -n SSH -l '*:22' -d cron -e 'service sshd start'", "there is no SSH socket -l *:22 -d cron"},
	{"check_net_socket -u alice -r '127.0.0.2:50000' -s ESTABLISHED", ""},
	{"check_net_socket -! -u alice", "there is a socket -u alice"},
	{"check_net_socket -! -p udp", ""},
	{"check_net_socket -p unix -t STREAM -s LISTENING -l '/run/munge/*'", ""},
	{"check_net_socket -p tcp -l '*:23'", "there is no socket -p tcp -l *:23"},
	{"check_cmd_output -m '/^uid=0/' -m '!/alice/' /usr/bin/id", ""},
	{"check_cmd_output -m '!/root/' -e '/usr/bin/id -u -n'", "the output of /usr/bin/id has a line that matches /root/"},
	{"check_cmd_output -m nothing /usr/bin/id", "the output of /usr/bin/id has no line that matches nothing"},
	{"check_cmd_output -r 1 /usr/bin/id", "/usr/bin/id ends with code 0 instead of 1"},
	{"check_cmd_status -r 1 /usr/bin/false", ""},
	{"check_cmd_status /usr/bin/false", "/usr/bin/false ends with code 1 instead of 0"},
	{"check_cmd_status -t 0 /usr/bin/sleep 1000", "/usr/bin/sleep did not end within 0s"},
	{"check_cmd_status DIR/nothing", "?DIR/nothing: no such file or directory"},
	{"check_cmd_status DIR", "?DIR: not a regular file"},
	{"check_cmd_status DIR/script", "?DIR/script: belongs to uid 1000, a user, and not to root; the user may have it open; replace it by a copy: cp DIR/script DIR/script.new && mv -f DIR/script.new DIR/script"},
	{"check_net_ping -c 2 -W 1 -I eth0 good", ""},
	{"check_net_ping good bad", "bad does not answer a ping"},
	{"check_net_ping unresolved", "?ping cannot send to unresolved"},
}

func TestAssertions(t *testing.T) {
	if !nstest.IsRoot() {
		t.Skip("needs root: files and processes of several owners")
	}
	s, dir := node(t)
	require.NoError(t, os.WriteFile(dir+"/script", []byte("#!/bin/sh\n"), 0o755))
	require.NoError(t, os.Chown(dir+"/script", 1000, 1000))
	fakePing(t, s)
	for _, c := range assertions {
		check := strings.ReplaceAll(c.check, "DIR", dir)
		lines := Parse("* || "+check, "n1")
		require.Len(t, lines, 1)
		require.Empty(t, lines[0].Problem, check)
		got, err := lines[0].Check(context.Background(), s)
		if err != nil {
			got = "?" + err.Error()
		}
		assert.Equal(t, strings.ReplaceAll(c.fault, "DIR", dir), got, check)
	}
}
