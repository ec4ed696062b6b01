// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	specs "github.com/opencontainers/runtime-spec/specs-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/gojail/config"
	"github.com/gojail/gojail/gojail/node"
	"github.com/gojail/gojail/internal/rootpath"
)

// lines prints a view, one mount, device or link on a line.
func lines(v *View) string {
	var b strings.Builder
	for _, m := range slices.Concat(v.Spec.Mounts, v.Data, v.Foreign) {
		source := m.Source
		if source == m.Destination {
			source = "="
		}
		fmt.Fprintf(&b, "%s %s %s %s\n", m.Destination, m.Type, source, strings.Join(m.Options, ","))
	}
	for _, d := range v.Spec.Linux.Devices {
		fmt.Fprintf(&b, "%s %s %d:%d\n", d.Path, d.Type, d.Major, d.Minor)
	}
	for _, dir := range v.SharedDirs {
		fmt.Fprintf(&b, "%s 1777\n", dir)
	}
	for _, l := range v.Links {
		fmt.Fprintf(&b, "%s -> %s\n", l.Path, l.Target)
	}
	return b.String()
}

const planConfig = `
default = "debian"
[slurm]
spool = "/var/spool/slurmd"
host  = ["/opt/slurm"]
[jail.debian]
root    = "/srv/jails/debian"
local   = ["/var/tmp", "/home/cache"]
devices = ["/dev/nvidia*"]
[[jail.debian.mounts]]
destination = "/scratch"
source      = "/lustre"
options     = ["rbind", "suid", "nodev"]
[[jail.debian.mounts]]
destination = "/data/ram"
type        = "tmpfs"
options     = ["size=1G"]
[[jail.debian.mounts]]
destination = "/data/sets"
type        = "overlay"
options     = ["lowerdir=/sets/a:/sets/b"]
`

func planFacts() *node.HostFacts {
	return &node.HostFacts{
		State: "/run/gojail",
		HostTop: []node.Top{
			{Name: "bin", Link: "usr/bin"}, {Name: "dev"}, {Name: "etc"}, {Name: "home"}, {Name: "lib", Link: "usr/lib"}, {Name: "opt"},
			{Name: "proc"}, {Name: "root"}, {Name: "run"}, {Name: "sys"}, {Name: "tmp"}, {Name: "usr"}, {Name: "var"},
		},
		JailTop: []node.Top{
			{Name: ".pmix"}, {Name: "bin", Link: "usr/bin"}, {Name: "data"}, {Name: "etc"}, {Name: "evil", Link: "/etc", Real: "/etc"}, {Name: "home"},
			{Name: "opt"}, {Name: "root"}, {Name: "scratch"}, {Name: "tmp"}, {Name: "users", Link: "home/users", Real: "/home/users"}, {Name: "usr"}, {Name: "var"},
		},
		Exists: map[string]bool{
			"/etc/hosts": true, "/etc/resolv.conf": true, "/etc/slurm": true, "/opt/slurm": true,
			"/run/munge": true, "/var/spool/slurmd": true, "/usr/bin": true, "/usr/lib/slurm": true, "/plugins/gojail": true,
		},
		Identity: []node.IdentityFile{
			{Path: "/etc/machine-id", Source: "/etc/machine-id"}, {Path: "/var/lib/dbus/machine-id", Source: "/etc/machine-id"},
			{Path: "/scratch/hostid", Source: "/etc/hostid"}, // in a mount of the jail
		},
		RunEntries: []node.RunEntry{
			{Path: "/run/enroot"}, {Path: "/run/enroot/deep"}, {Path: "/run/enroot/link", Link: "x"}, {Path: "/run/gojail"}, {Path: "/run/gojail/x"},
			{Path: "/run/screen", Link: "/etc"}, {Path: "/run/shm", Link: "/dev/shm"}, {Path: "/run/shm/x"},
			{Path: "/run/shm/y", Link: "x"}, {Path: "/run/systemd"}, {Path: "/run/systemd/resolve", Link: "/etc"},
		},
		VarTmp:     node.VarTmp{InJail: "/var/tmp", IsDir: true},
		Devices:    []node.Device{{Path: "/dev/nvidia-caps", Rdev: 0}, {Path: "/dev/nvidia-caps/cap1", Rdev: 7}, {Path: "/dev/nvidia0", Rdev: 8}},
		SlurmDirs:  []string{"/usr/lib/slurm"},
		SlurmFiles: []string{"/usr/bin/srun", "/opt/slurm/bin/squeue", "/plugins/gojail/spank_gojail.so"},
		Libraries:  []string{"/usr/lib/libreadline.so.8"},
		Foreign:    []string{"/data/lib", "/plugins/gojail/lib", "/srv/lib"},
		Command:    "/plugins/gojail/gojail",
	}
}

func planned(t *testing.T, text string) (*config.Config, *config.Jail) {
	t.Helper()
	c, err := config.ParseConfig(text, "n1")
	require.NoError(t, err)
	return c, c.Jails["debian"]
}

func TestPlanJail(t *testing.T) {
	c, j := planned(t, planConfig)
	v, err := Jail(c, j, planFacts())
	require.NoError(t, err)
	assert.Equal(t, `/proc proc proc nosuid,noexec,nodev,hidepid=2
/sys sysfs sysfs ro,nosuid,noexec,nodev
/sys/fs/cgroup tmpfs tmpfs mode=755,size=64k,nosuid,noexec,nodev
/dev tmpfs tmpfs mode=755,nosuid,noexec
/dev/pts devpts devpts nosuid,noexec,ptmxmode=666,mode=620,gid=5
/dev/shm tmpfs tmpfs ro,mode=1777,size=4k,nosuid,nodev,noexec
/dev/mqueue mqueue mqueue nosuid,noexec,nodev
/dev/nvidia-caps bind = bind,nosuid,noexec
/dev/nvidia0 bind = bind,nosuid,noexec
/run tmpfs tmpfs ro,mode=755,nosuid,nodev
/run/gojail tmpfs tmpfs ro,mode=755,nosuid,nodev
/var/tmp bind /var/lib/gojail/local/debian/var/tmp bind,nosuid,nodev
/home/cache bind /var/lib/gojail/local/debian/home/cache bind,nosuid,nodev
/scratch bind /lustre rbind,suid,nodev
/data/ram tmpfs tmpfs size=1G
/data/sets overlay overlay lowerdir=/sets/a:/sets/b
/etc/resolv.conf bind = rbind,ro,nosuid,nodev
/etc/hosts bind = rbind,ro,nosuid,nodev
/run/gojail/bin/gojail bind /plugins/gojail/gojail rbind,ro,nosuid,nodev
/etc/slurm bind = rbind,ro,nosuid,nodev
/opt/slurm bind = rbind,ro,nosuid,nodev
/usr/lib/slurm bind = rbind,ro,nosuid,nodev
/usr/bin/srun bind = rbind,ro,nosuid,nodev
/plugins/gojail/spank_gojail.so bind = rbind,ro,nosuid,nodev
/usr/lib/libreadline.so.8 bind = rbind,ro,nosuid,nodev
/run/munge/munge.socket.2 bind /dev/null bind,ro,nosuid,nodev,noexec
/etc/machine-id bind = bind,ro,nosuid,nodev,noexec
/var/lib/dbus/machine-id bind /etc/machine-id bind,ro,nosuid,nodev,noexec
/var/spool/slurmd tmpfs tmpfs mode=755,nosuid,nodev
/dev/null c 1:3
/dev/zero c 1:5
/dev/full c 1:7
/dev/random c 1:8
/dev/urandom c 1:9
/dev/tty c 5:0
/run/lock 1777
/run/screen 1777
/run/enroot 1777
/run/enroot/deep 1777
/run/systemd 1777
/dev/fd -> /proc/self/fd
/dev/stdin -> /proc/self/fd/0
/dev/stdout -> /proc/self/fd/1
/dev/stderr -> /proc/self/fd/2
/dev/ptmx -> pts/ptmx
/run/gojail/optional/etc:machine-id -> /etc/machine-id
/run/gojail/optional/var:lib:dbus:machine-id -> /var/lib/dbus/machine-id
/run/shm -> /dev/shm
`, lines(v))
	assert.Equal(t, []string{"nosuid", "nodev"}, v.RootOptions)
	assert.Equal(t, "/srv/jails/debian", v.Spec.Root.Path)
	assert.False(t, v.TmpfsRoot)
	assert.Contains(t, v.Spec.Linux.MaskedPaths, "/proc/kcore")
	assert.Contains(t, v.Spec.Linux.ReadonlyPaths, "/proc/sys")
}

func TestPlanJailWithoutSlurm(t *testing.T) {
	c, j := planned(t, planConfig)
	j.Slurm = false
	v, err := Jail(c, j, planFacts())
	require.NoError(t, err)
	assert.NotContains(t, lines(v), "slurm/")
	assert.NotContains(t, lines(v), "munge")
	assert.Contains(t, lines(v), "/var/spool/slurmd tmpfs", "batch scripts are there anyway")
}

func TestSpoolOfEachNode(t *testing.T) {
	for spool, want := range map[string]string{
		"/var/spool/slurmd/%n": "/var/spool/slurmd tmpfs tmpfs ro,mode=755,size=4k,nosuid,nodev,noexec\n" +
			"/var/spool/slurmd/n1 tmpfs tmpfs mode=755,nosuid,nodev\n",
		"/slurm/a.%n/%n": "/slurm tmpfs tmpfs ro,mode=755,size=4k,nosuid,nodev,noexec\n" +
			"/slurm/a.n1/n1 tmpfs tmpfs mode=755,nosuid,nodev\n",
		"/run/%n":     "/run/n1 tmpfs tmpfs mode=755,nosuid,nodev\n",
		"/run/s/%n/x": "/run/s/n1/x tmpfs tmpfs mode=755,nosuid,nodev\n",
	} {
		c, j := planned(t, strings.Replace(planConfig, "/var/spool/slurmd", spool, 1))
		v, err := Jail(c, j, planFacts())
		require.NoError(t, err)
		assert.Contains(t, lines(v), "nosuid,nodev,noexec\n"+want+"/dev/null c", spool)
		for _, target := range Targets(c, j, v, os.Stat) {
			assert.NotContains(t, target.Path, "n1", "no node has a mount target of its own")
		}
	}
}

func TestPlanJailRefusesWhatItBringsItself(t *testing.T) {
	c, j := planned(t, "default = \"debian\"\n[jail.debian]\nroot = \"/j\"\nhost = [\"/usr/bin/srun\"]")
	facts := planFacts()
	facts.Exists["/usr/bin/srun"] = true
	_, err := Jail(c, j, facts)
	assert.ErrorContains(t, err, "jail debian: /usr/bin/srun is the destination of two mounts")
}

func TestPlanStage(t *testing.T) {
	c, j := planned(t, planConfig)
	v, err := Stage(c, j, planFacts())
	require.NoError(t, err)
	assert.True(t, v.TmpfsRoot)
	assert.Equal(t, `/dev bind = rbind
/etc bind = rbind
/opt bind = rbind
/proc bind = rbind
/run bind = rbind
/sys bind = rbind
/usr bind = rbind
/var bind = rbind
/plugins/gojail bind = rbind
/tmp tmpfs gojail-data ro,mode=1777,size=4k,nosuid,nodev,noexec
/dev/shm tmpfs gojail-data ro,mode=1777,size=4k,nosuid,nodev,noexec
/data tmpfs gojail-data ro,mode=1777,size=4k,nosuid,nodev,noexec
/home tmpfs gojail-data:/users=/home/users ro,mode=1777,size=4k,nosuid,nodev,noexec
/scratch tmpfs gojail-data ro,mode=1777,size=4k,nosuid,nodev,noexec
/var/tmp tmpfs gojail-data ro,mode=1777,size=4k,nosuid,nodev,noexec
/data bind /srv/jails/debian/data rbind,nosuid,nodev,noexec
/home bind /srv/jails/debian/home rbind,nosuid,nodev,noexec
/scratch bind /srv/jails/debian/scratch rbind,nosuid,nodev,noexec
/var/tmp bind /srv/jails/debian/var/tmp rbind,nosuid,nodev,noexec
/var/tmp bind /var/lib/gojail/local/debian/var/tmp bind,nosuid,nodev,noexec
/home/cache bind /var/lib/gojail/local/debian/home/cache bind,nosuid,nodev,noexec
/scratch bind /lustre rbind,suid,nosuid,nodev,noexec
/data/sets overlay overlay lowerdir=/sets/a:/sets/b,nosuid,nodev,noexec
/data/lib tmpfs gojail-node ro,mode=1777,size=4k,nosuid,nodev,noexec
/data/lib bind = rbind,ro,nosuid,nodev
/srv/lib tmpfs gojail-node ro,mode=1777,size=4k,nosuid,nodev,noexec
/srv/lib bind = rbind,ro,nosuid,nodev
/bin -> usr/bin
/lib -> usr/lib
/users -> /home/users
`, lines(v))
}

// What root code may load in the stage never comes from the jail: not the system
// directories, not root's home, no hidden directory, no link to either.
func TestStageShowsOnlyDataOfTheJail(t *testing.T) {
	c, j := planned(t, planConfig)
	v, err := Stage(c, j, planFacts())
	require.NoError(t, err)
	for _, m := range v.Spec.Mounts {
		assert.False(t, strings.HasPrefix(m.Source, j.Root), m)
	}
	for _, m := range v.Data {
		if strings.HasPrefix(m.Source, j.Root) {
			assert.Contains(t, []string{"/data", "/home", "/scratch", "/var/tmp"}, m.Destination)
		}
		assert.Equal(t, []string{"nosuid", "nodev", "noexec"}, m.Options[len(m.Options)-3:])
	}
	for _, l := range v.Links {
		assert.NotEqual(t, "/evil", l.Path)
	}
}

func TestStageOfAReadonlyRoot(t *testing.T) {
	c, j := planned(t, planConfig)
	j.Readonly = true
	j.Mounts = append(j.Mounts, config.Mount{Destination: "/home/shared", Type: "bind", Source: "/shared", Options: []string{"rbind"}})
	v, err := Stage(c, j, planFacts())
	require.NoError(t, err)
	seen := 0
	for _, m := range v.Data {
		if strings.HasPrefix(m.Source, j.Root) {
			assert.Contains(t, m.Options, "ro", m)
			seen++
		}
	}
	assert.Positive(t, seen)
	assert.Contains(t, lines(v), "/home/shared bind /shared rbind,nosuid,nodev,noexec\n", "what is mounted there is as writable as in the jail")
}

func TestStageKeepsTheHostWhereSlurmNeedsIt(t *testing.T) {
	c, j := planned(t, strings.Replace(planConfig, `"/var/spool/slurmd"`, `"/data/slurm/spool"`, 1))
	facts := planFacts()
	facts.Exists["/data/slurm/spool"] = true
	v, err := Stage(c, j, facts)
	require.NoError(t, err)
	assert.Contains(t, lines(v), "/data/slurm/spool bind = rbind\n")
	assert.NotContains(t, lines(v), "/srv/jails/debian/data", "the jail's /data would hide the spool directory")

	j.Data = []string{"/data"}
	_, err = Stage(c, j, facts)
	assert.EqualError(t, err, "jail debian: /data cannot be a data directory: slurmd needs the node's own /data/slurm/spool")

	c.Slurm.Spool = "/tmp/spool"
	facts.Exists["/tmp/spool"] = true
	_, err = Stage(c, j, facts)
	assert.ErrorContains(t, err, "slurmd needs /tmp/spool, but /tmp is private to each job")
	for _, own := range []string{"/tmp/a/state", "/tmp/a/lib"} {
		facts.State, facts.SlurmFiles = "/tmp/a/state", []string{"/tmp/a/lib/spank_gojail.so"}
		facts.Exists = map[string]bool{own: true}
		_, err = Stage(c, j, facts)
		assert.ErrorContains(t, err, "gojail's directory "+own+" must not lie below /tmp, which is private to each job")
	}
}

func TestStageWithChosenData(t *testing.T) {
	c, j := planned(t, planConfig)
	j.Data = []string{"/home", "/root", "/missing"}
	v, err := Stage(c, j, planFacts())
	require.NoError(t, err)
	assert.Contains(t, lines(v), "/home bind /srv/jails/debian/home")
	assert.Contains(t, lines(v), "/root bind /srv/jails/debian/root")
	assert.NotContains(t, lines(v), "/srv/jails/debian/data")
	assert.NotContains(t, lines(v), "/missing")
}

// No file system of a job is hidden by a later one over the directory that it is in, such as /dev/infiniband by a /dev
// with the job's GPUs.
func TestNoOwnMountIsHidden(t *testing.T) {
	c, j := planned(t, planConfig)
	j.Devices = []string{"/dev/nvidia0"}
	own := OwnMounts(c, &node.Hardware{GPUs: [][]string{{"/dev/nvidia0"}}}, j)
	for i, below := range own {
		for _, later := range own[i+1:] {
			assert.False(t, later.How == mountOver && config.Under(below.Destination, later.Destination),
				"%s is hidden by a later %s", below.Destination, later.Destination)
		}
	}
}

func TestJobMounts(t *testing.T) {
	c, j := planned(t, planConfig)
	v := &View{Spec: &specs.Spec{Linux: &specs.Linux{}, Mounts: JobMounts(c, nil, j, "run-7", false, os.Stat)}}
	const pts = "/dev/pts devpts devpts nosuid,noexec,ptmxmode=666,mode=620,gid=5\n"
	const run = "/run tmpfs tmpfs mode=755,size=64m,nr_inodes=16k,nosuid,nodev\n"
	assert.Equal(t, run+"/proc proc proc nosuid,noexec,nodev,hidepid=2\n/sys/fs/cgroup tmpfs tmpfs mode=755,size=64k,nosuid,noexec,nodev\n"+pts+"/dev/mqueue mqueue mqueue nosuid,noexec,nodev\n"+
		"/tmp bind /var/lib/gojail/jobs/run-7/tmp bind,nosuid,nodev\n"+
		"/dev/shm tmpfs tmpfs mode=1777,nosuid,nodev\n"+
		"/run/munge/munge.socket.2 bind = bind,ro,nosuid,nodev,noexec\n", lines(v))
	j.Slurm = false
	j.Isolation.Namespaces, j.Isolation.Cgroups = nil, config.CgroupsNode
	c.Slurm.Spool = t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(c.Slurm.Spool, "job00012"), 0o700))
	j.Tmp, j.TmpSize, j.ShmSize = config.TmpTmpfs, 1<<20, 1<<10
	j.Devices = []string{"/dev/nvidia0"}
	v.Spec.Mounts = JobMounts(c, &node.Hardware{GPUs: [][]string{{"/dev/nvidia0"}}}, j, "12", true, os.Stat)
	assert.Equal(t, "/sys sysfs sysfs ro,nosuid,noexec,nodev\n"+run+"/dev tmpfs tmpfs mode=755,size=1m,nosuid,noexec\n"+
		"/dev/infiniband tmpfs tmpfs mode=755,size=64k,nosuid,noexec\n"+pts+"/tmp tmpfs tmpfs mode=1777,nosuid,nodev,size=1048576\n"+
		"/dev/shm tmpfs tmpfs mode=1777,nosuid,nodev,size=1024\n"+
		c.Slurm.Spool+" tmpfs tmpfs mode=755,size=65536,nosuid,nodev\n"+
		c.Slurm.Spool+"/job00012 bind = bind,ro,nosuid,nodev\n", lines(v))
}

// The node's users are mounted by each sandbox, behind them what packages of the jail brought.
func TestAccountsAreEachSandboxs(t *testing.T) {
	c, j := planned(t, "default = \"debian\"\n[jail.debian]\nroot = \"/j\"\nhost = [\"/etc/passwd\", \"/etc/hosts\"]")
	facts := planFacts()
	facts.Exists["/etc/passwd"] = true
	v, err := Jail(c, j, facts)
	require.NoError(t, err)
	assert.Contains(t, lines(v), "/run/gojail/node/passwd bind /etc/passwd rbind,ro,nosuid,nodev\n/etc/hosts bind = ")
	assert.NotContains(t, lines(v), "\n/etc/passwd ")
	assert.Contains(t, lines(&View{Spec: &specs.Spec{Linux: &specs.Linux{}, Mounts: JobMounts(c, nil, j, "7", false, os.Stat)}}), "\n/etc/passwd bind = bind,ro,nosuid,nodev,noexec\n")
	assert.Contains(t, Targets(c, j, v, os.Stat), Target{"/etc/passwd", false})
}

func TestReadSlurmConf(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
	write("slurm.conf", "# comment\nPluginDir=/opt/a:"+dir+"/plugins # more\nPROLOGFLAGS = Contain\ninclude more.conf\n")
	write("more.conf", "SlurmdSpoolDir=\"/spool/%n\"\nLaunchParameters=a,\\\n b,\\ # more\nc\nSlurmUser=\\\n\nEpilog=/x\\")
	write("plugstack.conf", "include plugstack.conf.d/*.conf\nrequired  relative.so\n#required /no.so\nrequired\tthere.so # now\nrequierd /x.so\n")
	write("plugins/there.so", "")
	write("plugstack.conf.d/gojail.conf", "required /lib/gojail/spank_gojail.so state=/run/%n state=/run/x/%n\noptional /lib/other.so \\\nmore\n")
	conf := node.ReadSlurmConf(&config.Config{Slurm: config.Slurm{Conf: dir}})
	assert.Equal(t, []string{"/opt/a", dir + "/plugins"}, conf.Plugins)
	assert.Equal(t, "Contain", conf.Values["prologflags"])
	assert.Equal(t, "/spool/%n", conf.Values["slurmdspooldir"])
	assert.Equal(t, "a, b,c", conf.Values["launchparameters"])
	assert.Equal(t, "", conf.Values["slurmuser"])
	assert.Equal(t, "/x", conf.Values["epilog"])
	at := func(name string, line int) string { return fmt.Sprintf("%s/%s line %d", dir, name, line) }
	assert.Equal(t, []node.SpankPlugin{
		{Path: "/lib/gojail/spank_gojail.so", Required: true, Arguments: []string{"state=/run/%n", "state=/run/x/%n"}, At: at("plugstack.conf.d/gojail.conf", 1)},
		{Path: "/lib/other.so", Required: false, Arguments: []string{"\\"}, At: at("plugstack.conf.d/gojail.conf", 2)},
		{Path: "relative.so", Required: true, Arguments: []string{}, At: at("plugstack.conf", 2)},
		{Path: dir + "/plugins/there.so", Required: true, Arguments: []string{}, At: at("plugstack.conf", 4)},
	}, conf.Plugstack)
	assert.Equal(t, []node.IgnoredLine{{Text: "more", At: at("plugstack.conf.d/gojail.conf", 3)}, {Text: "requierd /x.so", At: at("plugstack.conf", 5)}}, conf.Ignored)
	own := conf.GojailPlugins()
	require.Len(t, own, 1)
	assert.Equal(t, "/run/x/n1", own[0].Argument("state", "/run/gojail", "n1"), "the last one counts")
	assert.Equal(t, "/etc/g", own[0].Argument("config", "/etc/g", "n1"))
}

// TestReadSlurmFindsWhatLddFinds uses the Slurm of this machine.
func TestReadSlurmFindsWhatLddFinds(t *testing.T) {
	if !rootpath.Exists("/usr/bin/srun") {
		t.Skip("needs Slurm's client commands in /usr/bin")
	}
	parts := node.ReadSlurm(&config.Config{Slurm: config.Slurm{Conf: "/nonexistent"}})
	assert.Contains(t, parts.Files, "/usr/bin/srun")
	assert.NotEmpty(t, parts.Dirs, "srun names Slurm's plugin directory in its RUNPATH")
	all := strings.Join(append(parts.Files, parts.Libraries...), "\n")
	assert.Contains(t, all, "/libmunge.so.", "auth_munge.so needs it")
	assert.NotContains(t, all, "/libc.so.", "the jail's own")
}

func TestLibraryThatOnlyInitMadeIsMissing(t *testing.T) {
	j := &config.Jail{Name: "debian", Root: t.TempDir()}
	lib := filepath.Join(j.Root, "usr/lib")
	require.NoError(t, os.MkdirAll(lib, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(lib, "libempty.so.1"), nil, 0o644))
	require.NoError(t, os.WriteFile(filepath.Join(lib, "libfull.so.1"), []byte("x"), 0o644))
	root, err := node.OpenJail(j)
	require.NoError(t, err)
	defer unix.Close(root)
	assert.False(t, node.HasLibrary(root, "/usr/lib/libempty.so.1"))
	assert.True(t, node.HasLibrary(root, "/usr/lib64/libfull.so.1"))
	assert.False(t, node.HasLibrary(root, "/usr/lib/libnone.so.1"))
}

// munge's socket may lie on the jail's storage, or come with a directory of the host.
func TestMungeElsewhere(t *testing.T) {
	text := strings.Replace(planConfig, "[slurm]", "[slurm]\nmunge = \"/opt/munge/socket\"", 1)
	c, j := planned(t, text)
	v, err := Jail(c, j, planFacts())
	require.NoError(t, err)
	assert.Contains(t, lines(v), "/opt/munge/socket bind /dev/null bind,ro,nosuid,nodev,noexec\n")
	var targets []Target
	for _, target := range Targets(c, j, v, os.Stat) {
		if target.Path == "/opt/munge/socket" {
			targets = append(targets, target)
		}
	}
	assert.Equal(t, []Target{{"/opt/munge/socket", false}}, targets, "once, though each job mounts it again")

	c, j = planned(t, strings.Replace(text, `["/opt/slurm"]`, `["/opt/munge"]`, 1))
	v, err = Jail(c, j, planFacts())
	require.NoError(t, err)
	assert.NotContains(t, lines(v), "/opt/munge/socket")
	assert.Len(t, JobMounts(c, nil, j, "run-7", false, os.Stat), 7)
}
