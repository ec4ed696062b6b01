// SPDX-License-Identifier: Apache-2.0

package gojail

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
	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/gojail/cdi"
	"github.com/gojail/gojail/internal/trusted"
)

var fixedTime = time.Unix(1000, 0)

func noAccounts() Accounts {
	nobody := func(string) (uint32, error) { return 0, errors.New("unknown") }
	return Accounts{UID: nobody, GID: nobody}
}

func someAccounts() Accounts {
	return Accounts{
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
}

func TestSiteIsExactlyTheContract(t *testing.T) {
	c, err := parseConfig(wholeConfig(t), "n1")
	require.NoError(t, err)
	c.Identity = trusted.Identity{Dev: 1, Ino: 2, Size: 3, MtimeSec: 4, MtimeNsec: 5, CtimeSec: 6, CtimeNsec: 7}
	keys := map[string]string{"debian": "0123456789abcdef", "bare": "fedcba9876543210"}
	text, err := c.Site(someAccounts(), keys, nil, fixedTime)
	require.NoError(t, err)
	assert.Equal(t, "gojail-site "+strconv.Itoa(ContractVersion)+`
config 1 2 3 4 5 6 7
network -
until 0
default debian
none allow
deadline 5000
scratch /local/n1/gojail
jail bare
key fedcba9876543210
tmp disk 0
shm 0
spool /var/spool/slurmd.n1
munge /run/munge/munge.socket.2
net none
isolate pid ipc uts hidepid cgroup no_new_privs
bounding a00425fb
root -
seccomp -
access all
jail debian
key 0123456789abcdef
tmp tmpfs 4294967296
shm 536870912
spool /var/spool/slurmd.n1
munge -
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
	c, err := parseConfig(wholeConfig(t), "n1")
	require.NoError(t, err)
	text, err := c.Site(noAccounts(), nil, nil, fixedTime)
	require.NoError(t, err)
	assert.Contains(t, text, "\nuntil 1060\n")
	assert.Contains(t, text, "\naccess listed\nuid 5001\nend\n", "an unknown name opens nothing")
	assert.Equal(t, []string{"user alice of jail debian", "group hpc of jail debian"}, c.Unknown(noAccounts()))
}

func TestSiteWithOnlyUnknownUsersIsClosed(t *testing.T) {
	c, err := parseConfig("default = \"a\"\n[jail.a]\nroot = \"/j\"\nusers = [\"nosuch\"]", "")
	require.NoError(t, err)
	text, err := c.Site(noAccounts(), nil, nil, fixedTime)
	require.NoError(t, err)
	assert.Contains(t, text, "access listed\nend\n")
}

func TestWriteSiteReplacesTheFile(t *testing.T) {
	c, err := parseConfig("default = \"a\"\n[jail.a]\nroot = \"/j\"", "")
	require.NoError(t, err)
	state := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(state, "site"), []byte("old"), 0o644))
	require.NoError(t, WriteSite(c, state, time.Now().Add(time.Second)))
	text, err := os.ReadFile(filepath.Join(state, "site"))
	require.NoError(t, err)
	assert.True(t, strings.HasPrefix(string(text), "gojail-site "+strconv.Itoa(ContractVersion)+"\n"))
	assert.Contains(t, string(text), "\nkey "+c.Key(c.Jails["a"])+"\n")
	st, err := os.Stat(filepath.Join(state, "site"))
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o600), st.Mode())
	entries, err := os.ReadDir(state)
	require.NoError(t, err)
	assert.Len(t, entries, 3, "site, site.lock and the seccomp filters, no temporary file")
}

func TestWriteSiteGivesUpAtTheDeadline(t *testing.T) {
	c, err := parseConfig("default = \"none\"\nallow_none = true", "")
	require.NoError(t, err)
	state := t.TempDir()
	unlock, err := lockFile(filepath.Join(state, "site.lock"), time.Now())
	require.NoError(t, err)
	defer unlock()
	err = WriteSite(c, state, time.Now().Add(20*time.Millisecond))
	assert.ErrorContains(t, err, "cannot lock")
	assert.NoFileExists(t, filepath.Join(state, "site"))
}

func TestWriteSiteNamesAMissingStateDirectory(t *testing.T) {
	c, err := parseConfig("default = \"none\"\nallow_none = true", "")
	require.NoError(t, err)
	err = WriteSite(c, "/nonexistent/state", time.Now())
	assert.ErrorContains(t, err, "is the state directory there and writable?")
}

func TestKeyChangesWithTheTemplateOnly(t *testing.T) {
	assert.Len(t, (&Config{}).Key(&Jail{}), KeyLen)
	base := func() *Config {
		c, err := parseConfig(wholeConfig(t), "n1")
		require.NoError(t, err)
		return c
	}
	key := func(change func(c *Config, j *Jail)) string {
		c := base()
		change(c, c.Jails["debian"])
		return c.Key(c.Jails["debian"])
	}
	same := key(func(*Config, *Jail) {})
	assert.Len(t, same, 16)
	for name, change := range map[string]func(c *Config, j *Jail){
		"users":       func(c *Config, j *Jail) { j.Users = nil },
		"tmp":         func(c *Config, j *Jail) { j.Tmp, j.TmpSize = TmpDisk, 0 },
		"shm":         func(c *Config, j *Jail) { j.ShmSize = 1 },
		"user mounts": func(c *Config, j *Jail) { j.UserMounts = nil },
		"default":     func(c *Config, j *Jail) { c.Default = None },
		"deadline":    func(c *Config, j *Jail) { c.Deadline = 1 },
		"namespaces":  func(c *Config, j *Jail) { j.Isolation.Namespaces = nil },
	} {
		assert.Equal(t, same, key(change), name)
	}
	for name, change := range map[string]func(c *Config, j *Jail){
		"root":     func(c *Config, j *Jail) { j.Root = "/x" },
		"readonly": func(c *Config, j *Jail) { j.Readonly = false },
		"options":  func(c *Config, j *Jail) { j.Options = nil },
		"slurm":    func(c *Config, j *Jail) { j.Slurm = true },
		"data":     func(c *Config, j *Jail) { j.Data = nil },
		"host":     func(c *Config, j *Jail) { j.Host = nil },
		"local":    func(c *Config, j *Jail) { j.Local = nil },
		"device":   func(c *Config, j *Jail) { j.Devices = []string{"/dev/null"} },
		"hidepid":  func(c *Config, j *Jail) { j.Isolation.HidePID = !j.Isolation.HidePID },
		"cgroups":  func(c *Config, j *Jail) { j.Isolation.Cgroups = CgroupsJob },
		"mounts":   func(c *Config, j *Jail) { j.Mounts[0].Source = "/x" },
		"spool":    func(c *Config, j *Jail) { c.Slurm.Spool = "/x" },
		"scratch":  func(c *Config, j *Jail) { c.Scratch = "/x" },
	} {
		assert.NotEqual(t, same, key(change), name)
	}
}

func TestLockErrors(t *testing.T) {
	for err, want := range map[error]string{
		unix.EWOULDBLOCK: "cannot lock /s/lock: another process has been at it until the deadline",
		unix.EIO:         "cannot lock /s/lock: input/output error",
		unix.ENOSYS:      "cannot lock /s/lock: function not implemented; have the directory on the node itself, in /run say, or mount Lustre with -o flock",
		unix.ENOLCK:      "cannot lock /s/lock: no locks available; have the directory on the node itself, in /run say, or mount Lustre with -o flock",
	} {
		assert.EqualError(t, lockError("/s/lock", err), want)
	}
}

func FuzzSiteLines(f *testing.F) {
	f.Add("alice", "/spool")
	f.Add("a\nuid 0", "/s\nend")
	f.Fuzz(func(t *testing.T, user, spool string) {
		c := &Config{Default: "a", Scratch: "/s", Slurm: Slurm{Spool: "/p"}, Jails: map[string]*Jail{"a": {Name: "a", Users: []string{user}}}}
		if badAccount(user) || cleanPath(spool) != nil || strings.ContainsAny(spool, " \t") {
			return // Load refuses these
		}
		c.Slurm.Spool = spool
		text, err := c.Site(noAccounts(), nil, nil, fixedTime)
		require.NoError(t, err)
		require.LessOrEqual(t, strings.Count(text, "\n"), 21, "no value makes a line of its own")
	})
}

// TestContractSiteLines holds the words of the site file, as the header lists
// them, against what Site writes.
func TestContractSiteLines(t *testing.T) {
	text, err := os.ReadFile("../include/gojail.h")
	require.NoError(t, err)
	_, list, found := strings.Cut(string(text), "site is text")
	require.True(t, found)
	list, _, _ = strings.Cut(list, "*/")
	var want []string
	for _, m := range regexp.MustCompile(`(?m)^ \*   ([a-z-]+)\b`).FindAllStringSubmatch(list, -1) {
		want = append(want, m[1])
	}
	c, err := parseConfig(wholeConfig(t), "n1")
	require.NoError(t, err)
	delete(c.Jails, "bare")
	c.GPUs = [][]string{{"/dev/nvidia0"}}
	c.Jails["debian"].brought = &brought{edits: cdi.Edits{Env: []string{"A=b"}, LibraryDirs: []string{cdiDir + "/lib"}}}
	site, err := c.Site(someAccounts(), map[string]string{"debian": "0123456789abcdef"}, nil, fixedTime)
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
	const text = "scratch = \"/var/lib/gojail\"\n[slurm]\nmunge = \"/opt/munge/socket\"\nspool = \"/var/spool/slurmd\"\nhost = [%q]\n[jail.debian]\nroot = \"/jails/debian\"\nslurm = true\n"
	for host, want := range map[string]string{"/opt/slurm": "\nmunge /opt/munge/socket\n", "/opt/munge": "\nmunge -\n"} {
		c, err := parseConfig(fmt.Sprintf(text, host), "n1")
		require.NoError(t, err)
		site, err := c.Site(noAccounts(), nil, nil, fixedTime)
		require.NoError(t, err)
		assert.Contains(t, site, want, host)
	}
}
