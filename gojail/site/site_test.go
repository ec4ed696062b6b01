// SPDX-License-Identifier: Apache-2.0

package site

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/gojail/cdi"
	"github.com/gojail/gojail/gojail/config"
	"github.com/gojail/gojail/gojail/config/configtest"
	"github.com/gojail/gojail/gojail/contract"
	"github.com/gojail/gojail/gojail/node"
	"github.com/gojail/gojail/internal/filelock"
	"github.com/gojail/gojail/internal/rootpath"
	"github.com/gojail/gojail/internal/trusted"
)

var fixedTime = time.Unix(1000, 0)

func noFacts() facts {
	nobody := func(string) (uint32, error) { return 0, errors.New("unknown") }
	return facts{hardware: &node.Hardware{}, accounts: Accounts{UID: nobody, GID: nobody}}
}

func someFacts() facts {
	f := noFacts()
	f.accounts = Accounts{
		UID: func(name string) (uint32, error) {
			if name == "alice" {
				return 6000, nil
			}
			return 0, errors.New("unknown")
		},
		GID: func(name string) (uint32, error) {
			if name == "hpc" {
				return 700, nil
			}
			return 0, errors.New("unknown")
		},
	}
	return f
}

func TestSiteIsExactlyTheContract(t *testing.T) {
	c, err := config.ParseConfig(configtest.Whole(t), "n1")
	require.NoError(t, err)
	c.Identity = trusted.Identity{Dev: 1, Ino: 2, Size: 3, MtimeSec: 4, MtimeNsec: 5, CtimeSec: 6, CtimeNsec: 7}
	keys := map[string]string{"debian": "0123456789abcdef", "bare": "fedcba9876543210"}
	text, err := compile(c, someFacts(), keys, nil, fixedTime)
	require.NoError(t, err)
	assert.Equal(t, "gojail-site "+strconv.Itoa(contract.Version)+`
config 1 2 3 4 5 6 7
network -
until 0
default debian
none allow
deadline 5000
scratch /local/n1/gojail
summary AdminComment
session node /bin/sh 700
login 90000
rule bare uid 5001
rule bare uid 6000
rule bare gid 700
rule debian all 0
jail bare
key fedcba9876543210
source /srv/jails/bare
quota 0
spool /var/spool/slurmd.n1
mount upper tmpfs nosuid,nodev mode=700,size=2147483648 /
mount root overlay nosuid,nodev index=off,metacopy=off,redirect_dir=nofollow /
mount over,net sysfs ro,nosuid,nodev,noexec - /sys
mount over tmpfs nosuid,nodev mode=755,size=64m,nr_inodes=16k /run
mount over proc nosuid,nodev,noexec hidepid=2 /proc
mount in tmpfs nosuid,nodev,noexec mode=755,size=64k /sys/fs/cgroup
mount in,mkdir,net tmpfs nosuid,noexec mode=755,size=64k /dev/infiniband
mount in devpts nosuid,noexec ptmxmode=666,mode=620,gid=5 /dev/pts
mount in mqueue nosuid,nodev,noexec - /dev/mqueue
mount job bind nosuid,nodev - /tmp
mount job tmpfs nosuid,nodev mode=1777 /dev/shm
mount script tmpfs nosuid,nodev mode=755,size=65536 /var/spool/slurmd.n1
mount script bind ro,nosuid,nodev - /var/spool/slurmd.n1
mount munge bind ro,nosuid,nodev,noexec - /run/munge/munge.socket.2
net none
isolate pid ipc uts cgroup no_new_privs
bounding a00425fb
root -
seccomp -
access all
jail debian
key 0123456789abcdef
source /srv/jails/debian
quota 0
spool /var/spool/slurmd.n1
mount over,net sysfs ro,nosuid,nodev,noexec - /sys
mount over tmpfs nosuid,nodev mode=755,size=64m,nr_inodes=16k /run
mount over proc nosuid,nodev,noexec - /proc
mount in,mkdir,net tmpfs nosuid,noexec mode=755,size=64k /dev/infiniband
mount in devpts nosuid,noexec ptmxmode=666,mode=620,gid=5 /dev/pts
mount in mqueue nosuid,nodev,noexec - /dev/mqueue
mount job tmpfs nosuid,nodev mode=1777,size=4294967296 /tmp
mount job tmpfs nosuid,nodev mode=1777,size=536870912 /dev/shm
mount script tmpfs nosuid,nodev mode=755,size=65536 /var/spool/slurmd.n1
mount script bind ro,nosuid,nodev - /var/spool/slurmd.n1
net ai
isolate pid ipc scope
bounding 20
root self
seccomp -
access listed
uid 5001
uid 6000
gid 700
end
`, text)
}

func TestSiteIsCompiledAgainWhereAnAccountIsUnknown(t *testing.T) {
	c, err := config.ParseConfig(configtest.Whole(t), "n1")
	require.NoError(t, err)
	text, err := compile(c, noFacts(), nil, nil, fixedTime)
	require.NoError(t, err)
	assert.Contains(t, text, "\nuntil 1060\n")
	assert.Contains(t, text, "\naccess listed\nuid 5001\nend\n", "an unknown name opens nothing")
	assert.Contains(t, text, "\nlogin 90000\nrule bare uid 5001\nrule bare unknown-user alice\nrule bare unknown-group hpc\nrule debian all 0\njail bare\n", "nor does a later rule count")
	assert.Equal(t, []string{"user alice of jail debian", "group hpc of jail debian", "group hpc of session.exempt",
		"user alice of login.rules", "group hpc of login.rules"}, Unknown(c, noFacts().accounts))
}

func TestSiteWithOnlyUnknownUsersIsClosed(t *testing.T) {
	c, err := config.ParseConfig("default = \"a\"\n[jail.a]\nroot = \"/j\"\nusers = [\"nosuch\"]", "")
	require.NoError(t, err)
	text, err := compile(c, noFacts(), nil, nil, fixedTime)
	require.NoError(t, err)
	assert.Contains(t, text, "access listed\nend\n")
}

func TestWriteSiteReplacesTheFile(t *testing.T) {
	c, err := config.ParseConfig("default = \"a\"\n[jail.a]\nroot = \"/j\"", "")
	require.NoError(t, err)
	state := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(state, "site"), []byte("old"), 0o644))
	require.NoError(t, Write(c, Networks{}, state, time.Now().Add(time.Minute)))
	text, err := os.ReadFile(filepath.Join(state, "site"))
	require.NoError(t, err)
	assert.True(t, strings.HasPrefix(string(text), "gojail-site "+strconv.Itoa(contract.Version)+"\n"))
	assert.Contains(t, string(text), "\nkey "+Key(c, &node.Hardware{}, c.Jails["a"])+"\n")
	st, err := os.Stat(filepath.Join(state, "site"))
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o600), st.Mode())
	entries, err := os.ReadDir(state)
	require.NoError(t, err)
	assert.Len(t, entries, 3, "site, site.lock and the seccomp filters, no temporary file")
}

func TestWriteSiteGivesUpAtTheDeadline(t *testing.T) {
	c, err := config.ParseConfig("default = \"none\"\nallow_none = true", "")
	require.NoError(t, err)
	state := t.TempDir()
	unlock, err := filelock.Lock(filepath.Join(state, "site.lock"), time.Now())
	require.NoError(t, err)
	defer unlock()
	err = Write(c, Networks{}, state, time.Now().Add(20*time.Millisecond))
	assert.ErrorContains(t, err, "cannot lock")
	assert.NoFileExists(t, filepath.Join(state, "site"))
}

func TestWriteSiteNamesAMissingStateDirectory(t *testing.T) {
	c, err := config.ParseConfig("default = \"none\"\nallow_none = true", "")
	require.NoError(t, err)
	err = Write(c, Networks{}, "/nonexistent/state", time.Now())
	assert.ErrorContains(t, err, "does the state directory exist, and is it writable?")
}

func TestKeyChangesWithTheTemplateOnly(t *testing.T) {
	assert.Len(t, Key((&config.Config{}), &node.Hardware{}, &config.Jail{}), contract.KeyLen)
	base := func() *config.Config {
		c, err := config.ParseConfig(configtest.Whole(t), "n1")
		require.NoError(t, err)
		return c
	}
	key := func(change func(c *config.Config, j *config.Jail)) string {
		c := base()
		change(c, c.Jails["debian"])
		return Key(c, &node.Hardware{}, c.Jails["debian"])
	}
	same := key(func(*config.Config, *config.Jail) {})
	assert.Len(t, same, 16)
	for name, change := range map[string]func(c *config.Config, j *config.Jail){
		"users":       func(c *config.Config, j *config.Jail) { j.Users = nil },
		"tmp":         func(c *config.Config, j *config.Jail) { j.Tmp, j.TmpSize = config.TmpDisk, 0 },
		"shm":         func(c *config.Config, j *config.Jail) { j.ShmSize = 1 },
		"size":        func(c *config.Config, j *config.Jail) { j.WriteSize = 1 },
		"user mounts": func(c *config.Config, j *config.Jail) { j.UserMounts = nil },
		"default":     func(c *config.Config, j *config.Jail) { c.Default = config.None },
		"deadline":    func(c *config.Config, j *config.Jail) { c.Deadline = 1 },
		"namespaces":  func(c *config.Config, j *config.Jail) { j.Isolation.Namespaces = nil },
	} {
		assert.Equal(t, same, key(change), name)
	}
	for name, change := range map[string]func(c *config.Config, j *config.Jail){
		"root":     func(c *config.Config, j *config.Jail) { j.Root = "/x" },
		"readonly": func(c *config.Config, j *config.Jail) { j.Readonly = false },
		"writable": func(c *config.Config, j *config.Jail) { j.Writable = config.WritableDisk },
		"options":  func(c *config.Config, j *config.Jail) { j.Options = nil },
		"slurm":    func(c *config.Config, j *config.Jail) { j.Slurm = true },
		"data":     func(c *config.Config, j *config.Jail) { j.Data = nil },
		"host":     func(c *config.Config, j *config.Jail) { j.Host = nil },
		"identity": func(c *config.Config, j *config.Jail) { j.Identity = !j.Identity },
		"local":    func(c *config.Config, j *config.Jail) { j.Local = nil },
		"device":   func(c *config.Config, j *config.Jail) { j.Devices = []string{"/dev/null"} },
		"hidepid":  func(c *config.Config, j *config.Jail) { j.Isolation.HidePID = !j.Isolation.HidePID },
		"cgroups":  func(c *config.Config, j *config.Jail) { j.Isolation.Cgroups = config.CgroupsJob },
		"mounts":   func(c *config.Config, j *config.Jail) { j.Mounts[0].Source = "/x" },
		"spool":    func(c *config.Config, j *config.Jail) { c.Slurm.Spool = "/x" },
		"scratch":  func(c *config.Config, j *config.Jail) { c.Scratch = "/x" },
	} {
		assert.NotEqual(t, same, key(change), name)
	}
}

func FuzzSiteLines(f *testing.F) {
	f.Add("alice", "/spool")
	f.Add("a\nuid 0", "/s\nend")
	f.Fuzz(func(t *testing.T, user, spool string) {
		c := &config.Config{Default: "a", Scratch: "/s", Slurm: config.Slurm{Spool: "/p"}, Jails: map[string]*config.Jail{"a": {Name: "a", Users: []string{user}}}}
		if config.IsBadAccount(user) || rootpath.CheckClean(spool) != nil || strings.ContainsAny(spool, " \t") {
			return // Load refuses these
		}
		c.Slurm.Spool = spool
		text, err := compile(c, noFacts(), nil, nil, fixedTime)
		require.NoError(t, err)
		require.LessOrEqual(t, strings.Count(text, "\n"), 31, "no value makes a line of its own")
	})
}

// TestContractSiteLines holds the words of the site file, as docs/state.md lists
// them, against what Compile writes.
func TestContractSiteLines(t *testing.T) {
	text, err := os.ReadFile("../../docs/state.md")
	require.NoError(t, err)
	_, list, found := strings.Cut(string(text), "\n## The site file\n")
	require.True(t, found)
	list, _, _ = strings.Cut(list, "\n### ")
	var want []string
	for _, m := range regexp.MustCompile("(?m)^\\| `([a-z-]+)` \\|").FindAllStringSubmatch(list, -1) {
		want = append(want, m[1])
	}
	c, err := config.ParseConfig(configtest.Whole(t), "n1")
	require.NoError(t, err)
	delete(c.Jails, "bare")
	f := someFacts()
	f.hardware = &node.Hardware{GPUs: [][]string{{"/dev/nvidia0"}}, CDI: map[string]*node.CDIDevices{"debian": {Edits: cdi.Edits{Env: []string{"A=b"}, LibraryDirs: []string{contract.CDIDir + "/lib"}}}}}
	site, err := compile(c, f, map[string]string{"debian": "0123456789abcdef"}, nil, fixedTime)
	require.NoError(t, err)
	var have []string
	for line := range strings.Lines(site) {
		word, _, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		if len(have) == 0 || have[len(have)-1] != word {
			have = append(have, word)
		}
	}
	assert.Equal(t, want, have)
}

func TestSiteWithMungeOfTheHosts(t *testing.T) {
	const text = "default = \"debian\"\nscratch = \"/var/lib/gojail\"\n[slurm]\nmunge = \"/opt/munge/socket\"\nspool = \"/var/spool/slurmd\"\nhost = [%q]\n[jail.debian]\nroot = \"/jails/debian\"\nslurm = true\n"
	for host, want := range map[string]bool{"/opt/slurm": true, "/opt/munge": false} {
		c, err := config.ParseConfig(fmt.Sprintf(text, host), "n1")
		require.NoError(t, err)
		site, err := compile(c, noFacts(), nil, nil, fixedTime)
		require.NoError(t, err)
		assert.Equal(t, want, strings.Contains(site, "\nmount munge bind ro,nosuid,nodev,noexec - /opt/munge/socket\n"), host)
	}
}
