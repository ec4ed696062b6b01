// SPDX-License-Identifier: Apache-2.0

package config

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/gojail/config/configtest"
	"github.com/gojail/gojail/internal/tomlfile"
)

func TestParseConfigReadsEveryKey(t *testing.T) {
	c, err := ParseConfig(configtest.Whole(t), "n1")
	require.NoError(t, err)
	assert.Equal(t, "debian", c.Default)
	assert.True(t, c.AllowNone)
	assert.Equal(t, "/local/n1/gojail", c.Scratch)
	assert.Equal(t, "/shared/jails", c.Store)
	assert.Equal(t, 5*time.Second, c.Deadline)
	assert.Equal(t, Slurm{"/etc/slurm", "/var/spool/slurmd.n1", "/var/spool", "/run/munge/munge.socket.2", []string{"/opt/slurm"}, "AdminComment", ""}, c.Slurm)
	assert.Equal(t, Session{true, "node", []string{"hpc"}, "/bin/sh"}, c.Session)
	assert.Equal(t, Login{true, []LoginRule{{"bare", []string{"alice", "5001"}, []string{"hpc"}}, {Jail: "debian"}}, 90 * time.Second}, c.Login)
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
	c, err := ParseConfig("default = \"a\"\n[jail.a]\nroot = \"/j\"", "")
	require.NoError(t, err)
	assert.Equal(t, "/var/lib/gojail", c.Scratch)
	assert.Equal(t, 10*time.Second, c.Deadline)
	assert.Equal(t, Slurm{"/etc/slurm", "/var/spool/slurmd", "/var/spool/slurmd", "/run/munge/munge.socket.2", nil, "", ""}, c.Slurm)
	assert.Equal(t, Session{false, "refuse", nil, "/bin/bash"}, c.Session)
	assert.Equal(t, Login{false, nil, 10 * time.Minute}, c.Login)
	assert.Equal(t, &Jail{
		Name: "a", Root: "/j", Options: []string{"nosuid", "nodev"}, Slurm: true, Tmp: "disk",
		Host: []string{"/etc/resolv.conf", "/etc/hosts"}, Identity: true,
		Isolation: Isolation{
			Namespaces: namespaceKinds, HidePID: true, Cgroups: CgroupsJob, Abstract: AbstractNode, NoNewPrivs: true, Capabilities: defaultCapabilities,
			Seccomp: SeccompDefault,
		},
	}, c.Jails["a"])
	c, err = ParseConfig("default = \"a\"\n[jail.a]\nroot = \"/j\"\nhost = []\noptions = []", "")
	require.NoError(t, err)
	assert.Empty(t, c.Jails["a"].Host, "an empty list is not the default")
	assert.Empty(t, c.Jails["a"].Options)
}

func TestRootOfAStoreIsItsCurrentVersion(t *testing.T) {
	c, err := ParseConfig("default = \"a\"\nstore = \"/shared/jails\"\n[jail.a]\nroot = \"store:debian\"", "")
	require.NoError(t, err)
	assert.Equal(t, "/shared/jails/debian/current", c.Jails["a"].Root)
	assert.Equal(t, "debian", c.Jails["a"].Versions)
}

func TestStandardJailIsOneWithoutKeys(t *testing.T) {
	c, err := ParseConfig("default = \"a\"\n[jail.a]\nroot = \"/j\"", "")
	require.NoError(t, err)
	j, err := c.StandardJail("a", "/j")
	require.NoError(t, err)
	assert.Equal(t, c.Jails["a"], j)
	_, err = c.StandardJail("a", "j")
	require.ErrorContains(t, err, `"j": must be an absolute path`)
}

func TestSpoolOfEachNodeIsRefused(t *testing.T) {
	for spool, want := range map[string]string{
		"/%n/spool":            "would hide / of every jail; use a subdirectory, such as /slurmd/%n",
		"/var/%n":              "would hide /var of every jail; use a subdirectory, such as /var/slurmd/%n",
		"/var/spool/slurmd/%n": `"/var/spool/slurmd/n2": every jail has its own /var/spool/slurmd`, // the local directory
	} {
		_, err := ParseConfig("default = \"a\"\n[slurm]\nspool = \""+spool+"\"\n"+
			"[jail.a]\nroot = \"/j\"\nlocal = [\"/var/spool/slurmd/n2\"]", "n1")
		assert.ErrorContains(t, err, want)
	}
}

const (
	headText  = "default = \"none\"\nallow_none = true\n"
	jailText  = headText + "[jail.a]\nroot = \"/j\"\n"
	mountText = jailText + "[[jail.a.mounts]]\n"
)

// storeText is a configuration with a store, in table jail.a.
const storeText = headText + "store = \"/s\"\n[jail.a]\nroot = \"store:a\"\n"

// refusedConfigs are files with one mistake, and what is said about it.
var refusedConfigs = map[string]struct{ text, want string }{
	"no default":         {"", `default is missing: write the name of a jail`},
	"default unknown":    {"default = \"b\"\n[jail.a]\nroot = \"/j\"", "line 1: default: there is no [jail.b]; the jails are: a"},
	"none not allowed":   {"default = \"none\"", `line 1: default: "none" requires allow_none = true`},
	"syntax":             {"default = ", "line 1: "},
	"unknown key":        {jailText + "rot = 1", "line 5: jail.a.rot: unknown key"},
	"unknown table":      {headText + "[slrum]\nconf = \"/x\"", "line 3: slrum: unknown key"},
	"unknown in array":   {mountText + "destination = \"/x\"\nsrc = \"/y\"", "line 7: jail.a.mounts.src: unknown key"},
	"upper case":         {jailText + "Root = \"/k\"", "line 5: jail.a.Root: unknown key; keys are written in lower case"},
	"writable how":       {jailText + "writable = \"yes\"", `line 5: jail.a.writable: "yes": write "tmpfs" or "disk"`},
	"writable readonly":  {jailText + "writable = \"disk\"\nreadonly = true", "line 5: jail.a.writable: contradicts readonly = true; remove one of them"},
	"writable range":     {jailText + "writable = \"disk\"\njail_root = [\"range\"]", `line 5: jail.a.writable: cannot be combined with "range" in jail_root`},
	"writable size":      {jailText + "writable = \"disk\"\nwritable_size = \"1G\"", `line 6: jail.a.writable_size: requires writable = "tmpfs"`},
	"writable size bad":  {jailText + "writable = \"tmpfs\"\nwritable_size = \"much\"", `line 6: jail.a.writable_size: "much": write a size`},
	"wrong type":         {jailText + "readonly = \"yes\"", "line 5: jail.a.readonly: is a text; write true or false"},
	"invalid name":       {headText + "[jail.\"a b\"]\nroot = \"/j\"", "line 3: jail.a b: invalid name"},
	"name of a file":     {headText + "[jail.lock]\nroot = \"/j\"", "the name is reserved"},
	"name of a note":     {headText + "[jail.\"a.storage\"]\nroot = \"/j\"", "the name is reserved"},
	"none as name":       {headText + "[jail.none]\nroot = \"/j\"", `jail.none: "none" stands for no jail`},
	"no root":            {headText + "[jail.a]\nreadonly = true", "line 3: jail.a: root is missing"},
	"root is /":          {headText + "[jail.a]\nroot = \"/\"", `line 4: jail.a.root: "/" is not allowed`},
	"relative root":      {headText + "[jail.a]\nroot = \"j\"", `line 4: jail.a.root: "j": must be an absolute path`},
	"unclean root":       {headText + "[jail.a]\nroot = \"/j/../k\"", `write it as "/k"`},
	"long path":          {headText + "[jail.a]\nroot = \"/" + strings.Repeat("x", 1024) + "\"", "longer than 1023 bytes"},
	"newline in path":    {headText + "[jail.a]\nroot = \"/a\\nb\"", "unprintable character"},
	"root option":        {jailText + "options = [\"nouid\"]", `line 5: jail.a.options: unknown mount option "nouid"`},
	"store":              {headText + "store = \"jails\"", `line 3: store: "jails": must be an absolute path`},
	"root without store": {headText + "[jail.a]\nroot = \"store:a\"", `line 4: jail.a.root: "store:a": gojail.toml must say where the store is`},
	"mount of a store":   {storeText + "[[jail.a.mounts]]\ndestination = \"/t\"\nsource = \"/s/tools/current\"", `line 6: [[jail.a.mounts]] number 1: source: "/s/tools/current" lies in the store, in which gojail jail gc keeps only the roots of jails; write a directory outside /s`},
	"mount with dots":    {storeText + "[[jail.a.mounts]]\ndestination = \"/t\"\nsource = \"/s/../x\"", `number 1: source: "/s/../x"`},
	"mount of all of it": {storeText + "[[jail.a.mounts]]\ndestination = \"/t\"\nsource = \"/s\"", `source: "/s" lies in the store`},
	"overlay of a store": {storeText + "[[jail.a.mounts]]\ndestination = \"/t\"\ntype = \"overlay\"\noptions = [\"lowerdir=/x:/s/tools/versions/1\"]", `options: lowerdir: "/s/tools/versions/1" lies in the store`},
	"users' of a store":  {storeText + "[[jail.a.user_mounts]]\nsource = \"/s/tools\"", `line 6: [[jail.a.user_mounts]] number 1: source: "/s/tools" lies in the store`},
	"host of a store":    {storeText + "host = [\"/s/tools/current/bin\"]", `line 6: jail.a.host: "/s/tools/current/bin" lies in the store`},
	"root out of store":  {headText + "store = \"/s\"\n[jail.a]\nroot = \"store:../a\"", `line 5: jail.a.root: "store:../a": write store: and the name`},
	"deadline":           {headText + "deadline = \"soon\"", `line 3: deadline: "soon": write a time`},
	"deadline too long":  {headText + "deadline = \"2h\"", `write a time from "100ms" to "10m"`},
	"scratch blank":      {headText + "scratch = \"/a b\"", "line 3: scratch: \"/a b\": must not contain blanks"},
	"without_job":        {headText + "[session]\nwithout_job = \"shell\"", `line 4: session.without_job: "shell": write "refuse" or "node"`},
	"login nodes":        {headText + "[login]\njail = \"debian\"", `login.nodes is missing: write the names of the login nodes, such as ["login[1-2]"]`},
	"login node list":    {headText + "[login]\nnodes = [\"a[\"]\njail = \"debian\"", `line 4: login.nodes: "a[": `},
	"login jail":         {headText + "[login]\nnodes = [\"a\"]\njail = \"big\"", "line 5: login.jail: there is no [jail.big]; the jails are: "},
	"no login jail":      {headText + "[login]\nnodes = [\"a\"]", "login.jail is missing: write the name of the jail"},
	"login rule":         {headText + "[login]\nnodes = [\"a\"]\n[[login.rules]]\njail = \"debian\"", "login.rules: rule 1 names no users and no groups"},
	"login rule's jail":  {headText + "[login]\nnodes = [\"a\"]\n[[login.rules]]\njail = \"none\"\nusers = [\"a\"]", "login.rules: there is no [jail.none]"},
	"login account":      {headText + "[login]\nnodes = [\"a\"]\n[[login.rules]]\njail = \"debian\"\nusers = [\"a b\"]", `login.rules: "a b" is not a name or a number`},
	"login linger":       {headText + "[login]\nnodes = [\"a\"]\njail = \"debian\"\nlinger = \"0s\"", `login.linger: "0s": write a time from "1s" to "24h"`},
	"session shell":      {headText + "[session]\nshell = \"bash\"", `line 4: session.shell: "bash": must be an absolute path`},
	"exempt":             {headText + "[session]\nexempt = [" + strings.Repeat("\"a\",", 65) + "]", "line 4: session.exempt: names 65 groups; at most 64"},
	"session blank":      {headText + "[session]\nshell = \"/bin/bash -l\"", "line 4: session.shell: \"/bin/bash -l\": must not contain blanks"},
	"percent":            {headText + "scratch = \"/a/%h\"", "only %n, the node's name, is supported"},
	"node unknown":       {headText + "scratch = \"/a/%n\"", "give --node"},
	"tmp":                {jailText + "tmp = \"ram\"", `line 5: jail.a.tmp: "ram": write "disk" or "tmpfs"`},
	"size":               {jailText + "shm_size = \"4GB\"", `line 5: jail.a.shm_size: "4GB": write a size`},
	"size overflow":      {jailText + "shm_size = \"999999999999T\"", "too large"},
	"user":               {jailText + "users = [\"a b\"]", `line 5: jail.a.users: "a b" is not a name`},
	"data deep":          {jailText + "data = [\"/home/x\"]", "must be directly below /"},
	"data system":        {jailText + "data = [\"/etc\"]", "is a system directory"},
	"device outside dev": {jailText + "devices = [\"/etc/*\"]", "write a pattern below /dev"},
	"device pattern":     {jailText + "devices = [\"/dev/[a\"]", "write a pattern below /dev"},
	"no CDI device":      {jailText + "cdi = [\"gpu=0\"]", "write VENDOR/CLASS=NAME, such as nvidia.com/gpu=all"},
	"device pts":         {jailText + "devices = [\"/dev/pts/*\"]", "every jail already has /dev/pts"},
	"local nested":       {jailText + "local = [\"/var/tmp\", \"/var/tmp/x\"]", `"/var/tmp/x" lies in "/var/tmp"`},
	"local reserved":     {jailText + "local = [\"/proc/x\"]", "every jail has its own /proc"},
	"mount twice":        {mountText + "destination = \"/etc/hosts\"\nsource = \"/x\"", `"/etc/hosts" is the destination of two entries`},
	"mount on /":         {mountText + "destination = \"/\"\nsource = \"/x\"", `[[jail.a.mounts]] number 1: destination: "/" is not allowed`},
	"mount on /dev":      {mountText + "destination = \"/dev\"\nsource = \"/x\"", "every jail has its own /dev; choose a path below it"},
	"summary elsewhere":  {"[slurm]\njob_summary = \"admincomment\"\n", `line 2: slurm.job_summary: "admincomment": write "AdminComment", "Comment" or "none"`},
	"mount on spool":     {mountText + "destination = \"/var/spool/slurmd/x\"\nsource = \"/x\"", "every jail has its own /var/spool/slurmd"},
	"mount type":         {mountText + "destination = \"/x\"\ntype = \"nfs\"", `type: "nfs": write bind, tmpfs or overlay`},
	"bind no source":     {mountText + "destination = \"/x\"", "source: the path is empty"},
	"mount option":       {mountText + "destination = \"/x\"\nsource = \"/x\"\noptions = [\"nosiud\"]", `options: unknown option "nosiud"`},
	"shared option":      {mountText + "destination = \"/x\"\nsource = \"/x\"\noptions = [\"rshared\"]", `unknown option "rshared"`},
	"overlay no lower":   {mountText + "destination = \"/x\"\ntype = \"overlay\"", "an overlay requires lowerdir="},
	"overlay no work":    {mountText + "destination = \"/x\"\ntype = \"overlay\"\noptions = [\"lowerdir=/a\", \"upperdir=/b\"]", "must be given together"},
	"rule no source":     {jailText + "[[jail.a.user_mounts]]\ndestination = \"/mnt\"", "number 1: source is missing"},
	"rule reserved":      {jailText + "[[jail.a.user_mounts]]\nsource = \"/d\"\ndestination = \"/etc/x\"", "cannot mount on /etc/x"},
}

func TestParseConfigListsAllMistakes(t *testing.T) {
	_, err := ParseConfig("default = \"c\"\nscratch = \"x\"\n[jail.a]\nroot = \"j\"\ntmp = \"ram\"\n[jail.b]\nroot = \"/j\"\n"+
		"[[jail.b.mounts]]\ndestination = \"/x\"\nsource = \"/x\"\n[[jail.b.mounts]]\ndestination = \"y\"\n", "n1")
	assert.Equal(t, []string{
		`line 2: scratch: "x": must be an absolute path`,
		`line 4: jail.a.root: "j": must be an absolute path`,
		`line 5: jail.a.tmp: "ram": write "disk" or "tmpfs"`,
		`line 11: [[jail.b.mounts]] number 2: destination: "y": must be an absolute path`,
		`line 1: default: there is no [jail.c]; the jails are: a, b`,
	}, tomlfile.List(err))
}

func TestParseConfigRefuses(t *testing.T) {
	for name, test := range refusedConfigs {
		t.Run(name, func(t *testing.T) {
			c, err := ParseConfig(test.text, "")
			require.ErrorContains(t, err, test.want)
			assert.Nil(t, c)
			assert.NotContains(t, err.Error(), "\n", "one line")
		})
	}
}

func TestMountsBesideTheStore(t *testing.T) {
	c, err := ParseConfig(storeText+"host = [\"/sh\"]\n[[jail.a.mounts]]\ndestination = \"/t\"\nsource = \"/store\"\n[[jail.a.user_mounts]]\nsource = \"/shared\"", "")
	require.NoError(t, err)
	assert.Equal(t, "/s/a/current", c.Jails["a"].Root)
}

func TestJailNamesTheJailsThereAre(t *testing.T) {
	c, err := ParseConfig(configtest.Whole(t), "n1")
	require.NoError(t, err)
	_, err = c.Jail("debain")
	assert.EqualError(t, err, `jail "debain" is unknown; this node has: bare, debian`)
}

func TestExampleIsValid(t *testing.T) {
	text, err := os.ReadFile("../../gojail.toml.example")
	require.NoError(t, err)
	c, err := ParseConfig(string(text), "n1")
	require.NoError(t, err)
	assert.Contains(t, c.Jails, "debian")
	// What is commented out must be right too.
	var all []string
	for line := range strings.Lines(string(text)) {
		all = append(all, strings.TrimPrefix(line, "#: "))
	}
	_, err = ParseConfig(strings.Join(all, ""), "n1")
	assert.NoError(t, err)
}
