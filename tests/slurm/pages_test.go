// SPDX-License-Identifier: Apache-2.0

package slurm_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/tests/harness"
)

// pageBlock is a block of a page without a language: commands of an administrator or of a user, or lines of a file.
type pageBlock struct {
	page, first string // how the block begins
	lines       int

	as     string // who runs it here, "root" or "alice"; or the file to which it is added
	before string // what root does first: other sections of the page, or what its text says in words
	want   string // part of what it prints
	fails  bool   // it may: the page says what is still wrong then

	elsewhere string // where it is run instead: a file of the tests that has these lines, or reads them from the page
	not       string // why no test runs it
}

// pageBlocks are all of these pages, in the order in which an administrator comes to them.
var pageBlocks = []pageBlock{
	{page: "docs/install.md", first: "apt install ./build/package/gojail_*.deb", lines: 1, elsewhere: "tests/packages/inside"},
	{page: "docs/install.md", first: "make", lines: 1, not: "each suite of tests begins with it"},
	{page: "docs/install.md", first: "make install PREFIX=/usr", lines: 1, elsewhere: "tests/docs/links_test.go"},
	{page: "docs/install.md", first: "apt install mmdebstrap", lines: 4, as: "root"},
	{page: "docs/install.md", first: "apt install podman", lines: 4, as: "root"},
	{page: "docs/install.md", first: "gojail init debian", lines: 1, as: "root"},
	{page: "docs/install.md", first: "gojail check", lines: 1, as: "root", want: "OK    jail debian", fails: true},
	{page: "docs/install.md", first: "gojail run debian", lines: 1, as: "root", want: "in the jail"},
	{page: "docs/install.md", first: "required /usr/lib/gojail/spank_gojail.so", lines: 1, as: "/etc/slurm/plugstack.conf"},
	{page: "docs/install.md", first: "Prolog=/usr/lib/gojail/prolog-1", lines: 1, as: "/etc/slurm/slurm.conf"},

	{page: "README.md", first: "$ srun --jail=debian cat /etc/os-release", lines: 3, as: "alice", want: "imagenet here",
		before: "scontrol reconfigure; mkdir -p /data/imagenet; touch '/data/imagenet/imagenet here'; printf '#!/bin/sh\\n' >/home/alice/train.sh; chown -R alice: /home/alice; chmod 755 /data /data/imagenet"},
	{page: "README.md", first: "A job begins,", lines: 16, elsewhere: "tests/demo/main.go"},
	{page: "README.md", first: "apt install ./build/package/gojail_*.deb", lines: 2, elsewhere: "tests/packages/inside"},

	{page: "docs/storage.md", first: "cd /shared/jails", lines: 2, as: "root", before: "mkdir -p /shared/jails/debian-1 /shared/jails/debian-2; ln -s debian-1 /shared/jails/debian"},
	{page: "docs/storage.md", first: "OK    jail debian: storage", lines: 2, not: "it is what gojail check prints of an NFS server"},
	{page: "docs/storage.md", first: "gojail init --tree /build/debian debian", lines: 1, as: "root", before: "mkdir -p /build/debian; cd /srv/jails/debian; cp -L --parents bin/sh lib*/ld-linux-*.so.* lib/*-linux-gnu/libc.so.6 /build/debian"},
	{page: "docs/storage.md", first: "mksquashfs /build/debian", lines: 2, as: "root"},
	{page: "docs/storage.md", first: "ln -s debian-2.squashfs /srv/jails/debian.new", lines: 2, as: "root", before: "mv /srv/jails/debian /srv/jails/was; ln -s was /srv/jails/debian",
		want: "jail debian: ", fails: true},

	{page: "docs/operations.md", first: "install -D -m 644 slurmd.conf", lines: 2, elsewhere: "tests/site/setup_test.go"},
	{page: "docs/operations.md", first: `SLURMD_OPTIONS="--conf-server HOST:6817"`, lines: 1, elsewhere: "tests/site/dynamic_test.go"},
	{page: "docs/operations.md", first: "install -D -m 644 slurmd-dynamic.conf", lines: 3, elsewhere: "tests/site/dynamic_test.go"},
	{page: "docs/sessions.md", first: "override_shell = /usr/lib/gojail/gojail-session", lines: 1, not: "no test has an sssd with a directory; tests/session has the shell in passwd"},
	{page: "docs/sessions.md", first: "AcceptEnv SLURM_JOB_ID SLURM_JAIL", lines: 6, elsewhere: "tests/site/session_test.go"},
	{page: "docs/sessions.md", first: "systemctl mask user@.service", lines: 4, elsewhere: "tests/site/session_test.go"},
	{page: "docs/sessions.md", first: "state=/run/gojail/%n", lines: 2, elsewhere: "tests/session/cluster_test.go"},
	{page: "docs/sessions.md", first: "[session]", lines: 4, elsewhere: "tests/session/jail_test.go"},
	{page: "docs/sessions.md", first: "[login]", lines: 8, elsewhere: "tests/session/loginnode_test.go"},
	{page: "docs/sessions.md", first: "PrologFlags=Alloc", lines: 2, elsewhere: "tests/session/allocated_test.go"},
}

// readBlocks returns the blocks of a page without a language.
func readBlocks(t *testing.T, page string) (blocks []string) {
	t.Helper()
	text, err := os.ReadFile("../../" + page)
	require.NoError(t, err)
	fence := regexp.MustCompile("^ *```([a-z]*)$")
	var block *strings.Builder
	language := ""
	for line := range strings.Lines(string(text)) {
		found := fence.FindStringSubmatch(strings.TrimSuffix(line, "\n"))
		switch {
		case found != nil && block == nil:
			block, language = &strings.Builder{}, found[1]
		case found != nil:
			if language == "" || language == "sh" {
				blocks = append(blocks, block.String())
			}
			block = nil
		case block != nil:
			block.WriteString(strings.TrimPrefix(strings.TrimSpace(line), "$ ") + "\n")
		}
	}
	require.Nil(t, block, page)
	return blocks
}

// standIns are programs that fetch what they make from the network: here they take the test's root. umask is a careful administrator's.
const standIns = `umask 077
rm -rf /var/tmp/bin /srv/jails/ubuntu
mv /srv/jails/debian /var/tmp/tree
rmdir /srv/jails 2>/dev/null || rm -rf /srv/jails
mkdir /var/tmp/bin
cd /var/tmp/bin
printf '#!/bin/sh\n' >apt
printf '#!/bin/sh\nmv /var/tmp/tree $2; chmod 700 $2\n' >mmdebstrap
printf '#!/bin/sh\n[ $1 != export ] || tar -c -C /srv/jails/debian etc\n' >podman
printf '#!/bin/sh\nc=$1; shift; exec /opt/gojail/sbin/gojail $c --node=n1 "$@"\n' >gojail
chmod -R 755 /var/tmp/bin
sed -i /gojail/d /etc/slurm/plugstack.conf
`

// TestPagesWordForWord runs the commands of the pages in their order, where Slurm runs and gojail is installed but not set up; each block of a
// page is run here, in another test, or says why not.
func TestPagesWordForWord(t *testing.T) {
	texts := matchBlocks(t)
	if harness.Release() != "" {
		t.Skip("needs the machine's own release of Slurm, whose programs make images")
	}
	c := harness.Start(t, harness.Options{Plugin: true, Jails: []string{"debian"}, Config: strings.Split(harness.DefaultConfig, "[jail.other]")[0]})
	r := c.Root("sh", "-ec", strings.ReplaceAll(standIns, "/opt/gojail/sbin/gojail", strings.TrimSpace(c.Root("sh", "-c", "command -v gojail").Stdout)))
	require.Zero(t, r.Code, r)
	for i, b := range pageBlocks {
		t.Run(b.page+" "+b.first, func(t *testing.T) { b.run(t, c, texts[i]) })
	}
}

// matchBlocks returns the text of each of pageBlocks, and requires that the pages have these blocks and no others.
func matchBlocks(t *testing.T) (texts []string) {
	t.Helper()
	pages := map[string][]string{}
	for _, b := range pageBlocks {
		if pages[b.page] == nil {
			pages[b.page] = readBlocks(t, b.page)
		}
		require.NotEmpty(t, pages[b.page], "%s: %q is not there any more", b.page, b.first)
		text := pages[b.page][0]
		pages[b.page] = pages[b.page][1:]
		require.True(t, strings.HasPrefix(text, strings.TrimPrefix(b.first, "$ ")), "%s has another block than in pageBlocks: %s", b.page, text)
		require.Equal(t, b.lines, strings.Count(text, "\n"), "%s: %s", b.page, text)
		texts = append(texts, text)
	}
	for page, blocks := range pages {
		require.Empty(t, blocks, "%s: no row of pageBlocks", page)
	}
	return texts
}

func (b pageBlock) run(t *testing.T, c *harness.Cluster, text string) {
	t.Helper()
	r := c.Root("sh", "-ec", b.before)
	require.Zero(t, r.Code, r)
	text = strings.ReplaceAll(text, "/usr/lib/gojail", harness.Prefix+"/lib/gojail") // /usr is not the machine's own
	switch {
	case b.not != "":
		return
	case b.elsewhere != "":
		found, err := os.ReadFile("../../" + b.elsewhere)
		require.NoError(t, err)
		page := strings.TrimPrefix(b.page, "docs/")
		word, _, _ := strings.Cut(strings.Fields(strings.TrimPrefix(b.first, "$ "))[0], "=")
		assert.True(t, strings.Contains(string(found), page) || strings.Contains(string(found), word), "%s neither reads %s nor has %s", b.elsewhere, page, word)
		return
	case b.as == "alice":
		r = c.Run(harness.Alice, "sh", "-ec", "cd /home/alice; "+text)
	case b.as == "root":
		r = c.Root("sh", "-ec", "umask 077; PATH=/var/tmp/bin:$PATH; export PATH; cd /; "+strings.Replace(text, "gojail run debian", "echo echo in the jail | gojail run debian", 1))
	default:
		r = c.Root("sh", "-ec", "cat >>"+b.as+" <<'E'\n"+text+"E")
	}
	assert.True(t, r.Code == 0 || b.fails, r)
	assert.Contains(t, r.Stdout+r.Stderr, b.want)
	for line := range strings.Lines(r.Stdout) {
		if b.page == "docs/install.md" && strings.HasPrefix(line, "FAIL") {
			assert.Regexp(t, "^FAIL  plugstack: ", line, "only plugstack may be FAIL, the page says")
		}
	}
}
