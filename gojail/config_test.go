// SPDX-License-Identifier: Apache-2.0

package gojail

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/internal/nstest"
	"github.com/gojail/gojail/internal/tomlfile"
)

func TestParseConfigReadsEveryKey(t *testing.T) {
	c, err := parseConfig(wholeConfig(t), "n1")
	require.NoError(t, err)
	assert.Equal(t, "debian", c.Default)
	assert.True(t, c.AllowNone)
	assert.Equal(t, "/local/n1/gojail", c.Scratch)
	assert.Equal(t, 5*time.Second, c.Deadline)
	assert.Equal(t, Slurm{"/etc/slurm", "/var/spool/slurmd.n1", "/var/spool", "/run/munge/munge.socket.2", []string{"/opt/slurm"}, ""}, c.Slurm)
	assert.Equal(t, []string{"bare", "debian"}, c.JailNames())
	assert.Equal(t, &Jail{
		Name: "debian", Root: "/srv/jails/debian", Readonly: true, Options: []string{"nosuid"},
		Users: []string{"alice", "5001"}, Groups: []string{"hpc"}, Network: "ai", Tmp: "tmpfs", TmpSize: 4 << 30, ShmSize: 512 << 20,
		Data: []string{"/home"}, Host: []string{"/etc/hosts"}, Local: []string{"/var/tmp"}, Devices: []string{"/dev/nvidia*"},
		CDI: []string{"nvidia.com/gpu=all"},
		Mounts: []Mount{
			{"/scratch", "bind", "/scratch", []string{"rbind", "nosuid", "nodev"}},
			{"/opt/tools", "overlay", "overlay", []string{"lowerdir=/a:/b"}},
		},
		UserMounts: []UserRule{{"/data", "/mnt", true}},
		Isolation: Isolation{
			Namespaces: []string{"pid", "ipc"}, Cgroups: CgroupsNode, Abstract: AbstractStep, Capabilities: []string{"CAP_KILL"},
			Seccomp: "/etc/gojail/seccomp.json", JailRoot: []string{"self"},
		},
	}, c.Jails["debian"])
}

func TestParseConfigFillsInDefaults(t *testing.T) {
	c, err := parseConfig("default = \"a\"\n[jail.a]\nroot = \"/j\"", "")
	require.NoError(t, err)
	assert.Equal(t, "/var/lib/gojail", c.Scratch)
	assert.Equal(t, 10*time.Second, c.Deadline)
	assert.Equal(t, Slurm{"/etc/slurm", "/var/spool/slurmd", "/var/spool/slurmd", "/run/munge/munge.socket.2", nil, ""}, c.Slurm)
	assert.Equal(t, &Jail{
		Name: "a", Root: "/j", Options: []string{"nosuid", "nodev"}, Slurm: true, Tmp: "disk",
		Host: []string{"/etc/resolv.conf", "/etc/hosts"},
		Isolation: Isolation{
			Namespaces: namespaceKinds, HidePID: true, Cgroups: CgroupsJob, Abstract: AbstractNode, NoNewPrivs: true, Capabilities: defaultCapabilities,
			Seccomp: SeccompDefault,
		},
	}, c.Jails["a"])
	c, err = parseConfig("default = \"a\"\n[jail.a]\nroot = \"/j\"\nhost = []\noptions = []", "")
	require.NoError(t, err)
	assert.Empty(t, c.Jails["a"].Host, "an empty list is not the default")
	assert.Empty(t, c.Jails["a"].Options)
}

func TestSpoolOfEachNodeIsRefused(t *testing.T) {
	for spool, want := range map[string]string{
		"/%n/spool":            "would cover / of every jail; use a sub-directory, such as /slurmd/%n",
		"/var/%n":              "would cover /var of every jail; use a sub-directory, such as /var/slurmd/%n",
		"/var/spool/slurmd/%n": `"/var/spool/slurmd/n2": every jail has its own /var/spool/slurmd`, // the local directory
	} {
		_, err := parseConfig("default = \"a\"\n[slurm]\nspool = \""+spool+"\"\n"+
			"[jail.a]\nroot = \"/j\"\nlocal = [\"/var/spool/slurmd/n2\"]", "n1")
		assert.ErrorContains(t, err, want)
	}
}

const (
	headText  = "default = \"none\"\nallow_none = true\n"
	jailText  = headText + "[jail.a]\nroot = \"/j\"\n"
	mountText = jailText + "[[jail.a.mounts]]\n"
)

// refusedConfigs are files with one mistake, and what is said about it.
var refusedConfigs = map[string]struct{ text, want string }{
	"no default":         {"", `default: missing; write the name of a jail`},
	"default unknown":    {"default = \"b\"\n[jail.a]\nroot = \"/j\"", "line 1: default: there is no [jail.b]; the jails are: a"},
	"none not allowed":   {"default = \"none\"", `line 1: default: "none" needs allow_none = true`},
	"syntax":             {"default = ", "line 1: "},
	"unknown key":        {jailText + "rot = 1", "line 5: jail.a.rot: unknown key"},
	"unknown table":      {headText + "[slrum]\nconf = \"/x\"", "line 3: slrum: unknown key"},
	"unknown in array":   {mountText + "destination = \"/x\"\nsrc = \"/y\"", "line 7: jail.a.mounts.src: unknown key"},
	"upper case":         {jailText + "Root = \"/k\"", "line 5: jail.a.Root: unknown key; keys are written in lower case"},
	"wrong type":         {jailText + "readonly = \"yes\"", "line 5: jail.a.readonly: is a text; write true or false"},
	"bad name":           {headText + "[jail.\"a b\"]\nroot = \"/j\"", "line 3: jail.a b: bad name"},
	"name of a file":     {headText + "[jail.lock]\nroot = \"/j\"", "this name is taken"},
	"none as name":       {headText + "[jail.none]\nroot = \"/j\"", `jail.none: "none" means no jail`},
	"no root":            {headText + "[jail.a]\nreadonly = true", "line 3: jail.a: root is missing"},
	"root is /":          {headText + "[jail.a]\nroot = \"/\"", `line 4: jail.a.root: "/" itself`},
	"relative root":      {headText + "[jail.a]\nroot = \"j\"", `line 4: jail.a.root: "j": must be an absolute path`},
	"unclean root":       {headText + "[jail.a]\nroot = \"/j/../k\"", `write it as "/k"`},
	"long path":          {headText + "[jail.a]\nroot = \"/" + strings.Repeat("x", 1024) + "\"", "longer than 1023 bytes"},
	"newline in path":    {headText + "[jail.a]\nroot = \"/a\\nb\"", "control character"},
	"root option":        {jailText + "options = [\"nouid\"]", `line 5: jail.a.options: "nouid" is not an option of the root`},
	"deadline":           {headText + "deadline = \"soon\"", `line 3: deadline: "soon": write a time`},
	"deadline too long":  {headText + "deadline = \"2h\"", `write a time from "100ms" to "10m"`},
	"scratch blank":      {headText + "scratch = \"/a b\"", "line 3: scratch: \"/a b\": must not contain blanks"},
	"percent":            {headText + "scratch = \"/a/%h\"", "only %n, the node's name, is known"},
	"node unknown":       {headText + "scratch = \"/a/%n\"", "give it with --node"},
	"tmp":                {jailText + "tmp = \"ram\"", `line 5: jail.a.tmp: "ram": write "disk" or "tmpfs"`},
	"size":               {jailText + "shm_size = \"4GB\"", `line 5: jail.a.shm_size: "4GB": write a size`},
	"size overflow":      {jailText + "shm_size = \"999999999999T\"", "more than any memory holds"},
	"user":               {jailText + "users = [\"a b\"]", `line 5: jail.a.users: "a b" is not a name`},
	"data deep":          {jailText + "data = [\"/home/x\"]", "only directories directly below /"},
	"data system":        {jailText + "data = [\"/etc\"]", "is a system directory"},
	"device outside dev": {jailText + "devices = [\"/etc/*\"]", "write a pattern below /dev"},
	"device pattern":     {jailText + "devices = [\"/dev/[a\"]", "write a pattern below /dev"},
	"no CDI device":      {jailText + "cdi = [\"gpu=0\"]", "write VENDOR/CLASS=NAME, such as nvidia.com/gpu=all"},
	"device pts":         {jailText + "devices = [\"/dev/pts/*\"]", "every jail has /dev/pts already"},
	"local nested":       {jailText + "local = [\"/var/tmp\", \"/var/tmp/x\"]", `"/var/tmp/x" lies in "/var/tmp"`},
	"local reserved":     {jailText + "local = [\"/proc/x\"]", "every jail has its own /proc"},
	"mount twice":        {mountText + "destination = \"/etc/hosts\"\nsource = \"/x\"", `"/etc/hosts" is the destination of two mounts`},
	"mount on /":         {mountText + "destination = \"/\"\nsource = \"/x\"", `[[jail.a.mounts]] number 1: destination: "/" itself`},
	"mount on /dev":      {mountText + "destination = \"/dev\"\nsource = \"/x\"", "every jail has its own /dev; only below it"},
	"mount on spool":     {mountText + "destination = \"/var/spool/slurmd/x\"\nsource = \"/x\"", "every jail has its own /var/spool/slurmd"},
	"mount type":         {mountText + "destination = \"/x\"\ntype = \"nfs\"", `type: "nfs": write bind, tmpfs or overlay`},
	"bind no source":     {mountText + "destination = \"/x\"", "source: the path is empty"},
	"mount option":       {mountText + "destination = \"/x\"\nsource = \"/x\"\noptions = [\"nosiud\"]", `options: "nosiud" is not known`},
	"shared option":      {mountText + "destination = \"/x\"\nsource = \"/x\"\noptions = [\"rshared\"]", `"rshared" is not known`},
	"overlay no lower":   {mountText + "destination = \"/x\"\ntype = \"overlay\"", "an overlay needs lowerdir="},
	"overlay no work":    {mountText + "destination = \"/x\"\ntype = \"overlay\"\noptions = [\"lowerdir=/a\", \"upperdir=/b\"]", "go together"},
	"rule no source":     {jailText + "[[jail.a.user_mounts]]\ndestination = \"/mnt\"", "number 1: source is missing"},
	"rule reserved":      {jailText + "[[jail.a.user_mounts]]\nsource = \"/d\"\ndestination = \"/etc/x\"", "nothing may be mounted on /etc/x"},
}

func TestParseConfigListsAllMistakes(t *testing.T) {
	_, err := parseConfig("default = \"c\"\nscratch = \"x\"\n[jail.a]\nroot = \"j\"\ntmp = \"ram\"\n[jail.b]\nroot = \"/j\"\n"+
		"[[jail.b.mounts]]\ndestination = \"/x\"\nsource = \"/x\"\n[[jail.b.mounts]]\ndestination = \"y\"\n", "n1")
	assert.Equal(t, []string{
		`line 2: scratch: "x": must be an absolute path`,
		`line 4: jail.a.root: "j": must be an absolute path`,
		`line 5: jail.a.tmp: "ram": write "disk" or "tmpfs"`,
		`line 11: [[jail.b.mounts]] number 2: destination: "y": must be an absolute path`,
		`line 1: default: there is no [jail.c]; the jails are: a, b`,
	}, tomlfile.List(err))
}

func TestSpoolIsSlurmConfs(t *testing.T) {
	const text = "default = \"a\"\n[jail.a]\nroot = \"/j\"\n"
	for dir, want := range map[string]Slurm{
		"/var/lib/slurm/slurmd":   {Spool: "/var/lib/slurm/slurmd", SpoolBase: "/var/lib/slurm/slurmd"},
		"/var/spool/slurmd/%n":    {Spool: "/var/spool/slurmd/n1", SpoolBase: "/var/spool/slurmd"},
		"/var/spool/slurmd/%h":    {Spool: "/var/spool/slurmd/host", SpoolBase: "/var/spool/slurmd"},
		"/var/spool/slurmd/%h-%n": {Spool: "/var/spool/slurmd/host-n1", SpoolBase: "/var/spool/slurmd"},
	} {
		given := func(conf string) spoolDir {
			assert.Equal(t, "/etc/slurm", conf)
			return spoolDir{dir, "host", "/etc/slurm/slurm.conf"}
		}
		c, err := parseConfigOn(text, "n1", given)
		require.NoError(t, err)
		assert.Equal(t, want, Slurm{Spool: c.Slurm.Spool, SpoolBase: c.Slurm.SpoolBase}, dir)
		c, err = parseConfigOn(text+"[slurm]\nspool = \"/spool\"", "n1", given)
		require.NoError(t, err)
		assert.Equal(t, "/spool", c.Slurm.Spool, "what gojail.toml says comes first")
	}
	_, err := parseConfigOn(text, "n1", func(string) spoolDir { return spoolDir{"/var/%h", "h", "/etc/slurm/slurm.conf"} })
	assert.ErrorContains(t, err, "would cover /var of every jail; use a sub-directory, such as /var/slurmd/%n (SlurmdSpoolDir of /etc/slurm/slurm.conf)")
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(dir+"/slurm.conf", []byte("SlurmdSpoolDir=/x/%n/\n"), 0o644))
	assert.Equal(t, "/x/%n", readSpoolDir(dir).dir)
}

func TestParseConfigRefuses(t *testing.T) {
	for name, test := range refusedConfigs {
		t.Run(name, func(t *testing.T) {
			c, err := parseConfig(test.text, "")
			require.ErrorContains(t, err, test.want)
			assert.Nil(t, c)
			assert.NotContains(t, err.Error(), "\n", "one line")
		})
	}
}

func TestJailNamesTheJailsThereAre(t *testing.T) {
	c, err := parseConfig(wholeConfig(t), "n1")
	require.NoError(t, err)
	_, err = c.Jail("debain")
	assert.EqualError(t, err, `jail "debain" is unknown; this node has: bare, debian`)
}

func TestLoadRefusesWhatOthersCanWrite(t *testing.T) {
	nstest.NeedRoot(t)
	dir := t.TempDir()
	path := filepath.Join(dir, "gojail.toml")
	text := []byte("default = \"none\"\nallow_none = true\n")
	require.NoError(t, os.WriteFile(path, text, 0o644))
	c, err := Load(path, "")
	require.NoError(t, err)
	assert.EqualValues(t, len(text), c.Identity.Size)
	assert.NotZero(t, c.Identity.Ino)
	assert.NotZero(t, c.Identity.MtimeSec)

	for name, test := range map[string]struct {
		change func() error
		want   string
	}{
		"group writes": {func() error { return os.Chmod(path, 0o664) }, "others can write it (mode 0664); run: chmod go-w " + path},
		"owner":        {func() error { return os.Chown(path, 65534, 0) }, "belongs to uid 65534 and not to root"},
		"directory":    {func() error { return os.Chmod(dir, 0o777) }, dir + ": others can write it (mode 0777)"},
		"dir owner":    {func() error { return os.Chown(dir, 65534, 0) }, dir + ": belongs to uid 65534"},
		"missing":      {func() error { return os.Remove(path) }, "cannot read the configuration: no such file"},
		"a directory":  {func() error { os.Remove(path); return os.Mkdir(path, 0o755) }, "not a regular file"},
		"a link out": {func() error {
			open := t.TempDir()
			target := filepath.Join(open, "gojail.toml")
			os.Remove(path)
			if err := os.WriteFile(target, text, 0o644); err != nil {
				return err
			}
			if err := os.Symlink(target, path); err != nil {
				return err
			}
			return os.Chmod(open, 0o777)
		}, "others can write it (mode 0777)"},
	} {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, os.RemoveAll(path))
			require.NoError(t, os.WriteFile(path, text, 0o644))
			require.NoError(t, os.Chmod(dir, 0o755))
			require.NoError(t, os.Chown(dir, 0, 0))
			require.NoError(t, test.change())
			_, err := Load(path, "")
			assert.ErrorContains(t, err, test.want)
		})
	}
}

func TestExampleIsValid(t *testing.T) {
	text, err := os.ReadFile("../gojail.toml.example")
	require.NoError(t, err)
	c, err := parseConfig(string(text), "n1")
	require.NoError(t, err)
	assert.Contains(t, c.Jails, "debian")
	// What is commented out must be right too.
	var all []string
	for line := range strings.Lines(string(text)) {
		all = append(all, strings.TrimPrefix(line, "#: "))
	}
	_, err = parseConfig(strings.Join(all, ""), "n1")
	assert.NoError(t, err)
}

func FuzzParseConfig(f *testing.F) {
	f.Add(wholeConfig(f))
	f.Add("default = \"none\"\nallow_none = true\n[jail]\n\"a\\\"b\" = 1")
	f.Add("[[jail.a.mounts]]\nx.y = 1")
	f.Fuzz(func(t *testing.T, text string) {
		c, err := parseConfig(text, "n1")
		if err != nil {
			require.NotContains(t, err.Error(), "\n")
			return
		}
		for _, j := range c.Jails {
			require.NoError(t, cleanPath(j.Root))
			PlanJail(c, j, &HostFacts{})
			PlanStage(c, j, &HostFacts{})
		}
		site, err := c.Site(noAccounts(), nil, nil, fixedTime)
		require.NoError(t, err)
		require.True(t, strings.HasSuffix(site, "\nend\n"))
	})
}
