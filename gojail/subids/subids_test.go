// SPDX-License-Identifier: Apache-2.0

package subids

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/internal/nstest"
)

// passwd and group have what each node has, and alice.
const (
	passwd = "root:x:0:0::/root:/bin/sh\nnobody:x:65534:65534::/:/bin/false\nalice:x:5001:5001::/home/alice:/bin/sh\nbob:x:5002:5002::/home/bob:/bin/sh\n"
	group  = "root:x:0:\nnogroup:x:65534:\nalice:x:5001:\n"
	usual  = "alice:100000:65536\n"
)

// newSource returns a name service with these accounts, beside files below a directory that only root can write.
func newSource(t *testing.T, files map[string]string, more map[string]string) Source {
	t.Helper()
	nstest.NeedRoot(t)
	dir, err := os.MkdirTemp("/var/tmp", "gojail-subids-")
	require.NoError(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	for name, text := range map[string]string{"subuid": usual, "subgid": usual} {
		if _, given := files[name]; !given {
			require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
		}
	}
	for name, text := range files {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
	databases := map[string]string{"passwd": passwd + more["passwd"], "group": group + more["group"]}
	return Source{
		Etc: dir,
		List: func(_ context.Context, database string, pass func(string)) error {
			for line := range strings.Lines(databases[database]) {
				pass(strings.TrimSuffix(line, "\n"))
			}
			return nil
		},
		LookUp: func(context.Context, string, uint32) (string, error) { return "", nil },
	}
}

// TestFind is the table of ranges and of whose ids they may be.
func TestFind(t *testing.T) {
	const of, free = "--jail-root=range: the ids 100000-165535 of alice in /etc/", "; ask your administrator to write alice:165536:65536 in its place, whose ids are free"
	for name, test := range map[string]struct {
		subuid, subgid, passwd, group, defs string
		want                                IDRange
		fault                               string
	}{
		"free":       {want: IDRange{100000, 100000}},
		"an account": {passwd: "carol:x:123456:5:::", fault: of + "subuid include uid 123456 of carol" + free},
		"an account and its group": {passwd: "carol:x:123456:123456:::", fault: of + "subuid include uid 123456 of carol" + free +
			"; and the ids 100000-165535 of alice in /etc/subgid include gid 123456 of carol" + free},
		"its first id":                   {passwd: "carol:x:100000:5:::", fault: of + "subuid include uid 100000 of carol" + free},
		"its last id":                    {passwd: "carol:x:165535:5:::", fault: of + "subuid include uid 165535 of carol" + free},
		"below it":                       {passwd: "carol:x:99999:99999:::", want: IDRange{100000, 100000}},
		"above it":                       {passwd: "carol:x:165536:165536:::", want: IDRange{100000, 100000}},
		"a group":                        {group: "staff:x:123456:", fault: of + "subgid include gid 123456 of group staff" + free},
		"a group without a line of its":  {passwd: "carol:x:5003:123456:::", fault: of + "subgid include gid 123456 of carol" + free},
		"a group in the range of uids":   {group: "staff:x:123456:", subgid: "alice:300000:65536", want: IDRange{100000, 300000}},
		"the user's own other account":   {passwd: "alice2:x:123456:5:::", fault: of + "subuid include uid 123456 of alice2" + free},
		"many accounts":                  {passwd: "c:x:123456:5:::\nd:x:170000:5:::\ne:x:231072:5:::", fault: of + "subuid include uid 123456 of c; ask your administrator to write alice:296608:65536 in its place, whose ids are free"},
		"another's range":                {subuid: usual + "bob:165535:65536", fault: of + "subuid overlap those of bob there (bob:165535:65536); ask your administrator to write alice:231072:65536 in its place, whose ids are free"},
		"another's range beside it":      {subuid: usual + "bob:165536:65536", want: IDRange{100000, 100000}},
		"another's small range in it":    {subgid: usual + "bob:120000:1", fault: of + "subgid overlap those of bob there (bob:120000:1)" + free},
		"another's range, by number":     {subuid: usual + "5002:100000:65536", fault: of + "subuid overlap those of 5002 there (5002:100000:65536)" + free},
		"a range of containers over it":  {subuid: usual + "root:100000:1000000000", fault: of + "subuid overlap those of root there (root:100000:1000000000); ask your administrator to write alice:1000113824:65536 in its place, whose ids are free"},
		"the user's own, by number":      {subuid: usual + "5001:100000:65536", want: IDRange{100000, 100000}},
		"the user's own, by other name":  {passwd: "alias:x:5001:5001:::", subuid: usual + "alias:100000:65536", want: IDRange{100000, 100000}},
		"by number alone":                {subuid: "5001:200000:65536", want: IDRange{200000, 100000}},
		"the second is free":             {passwd: "carol:x:123456:5:::", subuid: usual + "alice:300000:70000", want: IDRange{300000, 100000}},
		"the first is too small":         {subuid: "alice:200000:1000\nalice:300000:65536", want: IDRange{300000, 100000}},
		"ids that useradd gives":         {defs: "# UID_MAX 1\nUID_MAX\t\t120000\n", fault: of + "subuid are such as useradd gives to accounts: UID_MAX of /etc/login.defs is 120000" + free},
		"gids that groupadd gives":       {defs: "GID_MAX 100000\n", fault: of + "subgid are such as groupadd gives to accounts: GID_MAX of /etc/login.defs is 100000" + free},
		"the node's own ids":             {subuid: "alice:65535:65536", fault: "--jail-root=range: the ids 65535-131070 of alice in /etc/subuid include ids below 65536, which are the node's own; ask your administrator to write alice:100000:65536 in its place, whose ids are free"},
		"root's id":                      {subuid: "alice:0:65536", fault: "--jail-root=range: the ids 0-65535 of alice in /etc/subuid include ids below 65536, which are the node's own; ask your administrator to write alice:100000:65536 in its place, whose ids are free"},
		"beyond the last id":             {subuid: "alice:4294901760:65536", fault: "--jail-root=range: /etc/subuid has no range of at least 65536 ids for alice; ask your administrator for a line such as alice:100000:65536"},
		"lines that nobody can read":     {subuid: "alice:100000\nalice:x:65536\nalice:1:2:3\nalice:200000:65536:\n", fault: "--jail-root=range: /etc/subuid has no range of at least 65536 ids for alice; ask your administrator for a line such as alice:100000:65536"},
		"no line, and one is taken":      {subuid: "bob:100000:65536", fault: "--jail-root=range: /etc/subuid has no range of at least 65536 ids for alice; ask your administrator for a line such as alice:165536:65536"},
		"an account with a strange line": {passwd: "carol:x:-1:5:::\n+::::::\ndave:x:4294967295:5:::", want: IDRange{100000, 100000}},
	} {
		t.Run(name, func(t *testing.T) {
			files := map[string]string{"login.defs": test.defs, "nsswitch.conf": "passwd: files systemd\n"}
			for name, text := range map[string]string{"subuid": test.subuid, "subgid": test.subgid} {
				if text != "" {
					files[name] = text
				}
			}
			table, err := Read(t.Context(), newSource(t, files, map[string]string{"passwd": test.passwd, "group": test.group}))
			require.NoError(t, err)
			got, err := table.Find(5001, "alice")
			if test.fault != "" {
				assert.EqualError(t, err, test.fault)
				return
			}
			assert.NoError(t, err)
			assert.Equal(t, test.want, got)
		})
	}
}

// TestRemedyIsFree requires that the range that an error names is not refused in its turn.
func TestRemedyIsFree(t *testing.T) {
	more := map[string]string{"passwd": "a:x:100000:1:::\nb:x:165536:1:::\n", "group": "c:x:296608:\n"}
	files := map[string]string{"subuid": usual + "bob:231072:65536\n"}
	for range 2 {
		table, err := Read(t.Context(), newSource(t, files, more))
		require.NoError(t, err)
		_, err = table.Find(5001, "alice")
		if err == nil {
			return
		}
		_, remedy, _ := strings.Cut(err.Error(), "to write ")
		line, _, _ := strings.Cut(remedy, " ")
		files["subuid"] = line + "\nbob:231072:65536\n"
	}
	assert.Fail(t, "the remedy was refused")
}

func TestUnlisted(t *testing.T) {
	for text, want := range map[string][]string{
		"": nil,
		"passwd: files systemd\ngroup: compat\nhosts: dns":        nil,
		"passwd: files sss\ngroup: files [NOTFOUND=return] sss\n": {"sss"},
		"passwd:files winbind # sss\n group : ldap\n":             {"ldap", "winbind"},
		"passwd: files [ !SUCCESS=return UNAVAIL=return ] mine":   {"mine"},
		"passwd: files\nsubid: sss":                               {"sss"},
	} {
		table, err := Read(t.Context(), newSource(t, map[string]string{"nsswitch.conf": text}, nil))
		require.NoError(t, err)
		assert.Equal(t, want, table.Unlisted, text)
	}
}

// TestNameServiceThatFails requires that nothing is concluded from a service that fails or does not answer.
func TestNameServiceThatFails(t *testing.T) {
	s := newSource(t, nil, nil)
	s.List = func(context.Context, string, func(string)) error { return errors.New("down") }
	_, err := Read(t.Context(), s)
	assert.EqualError(t, err, "down")

	for id, want := range map[uint32]string{100000: "uid 100000", 365535: "gid 365535"} {
		r := IDRange{100000, 300000}
		s.LookUp = func(_ context.Context, _ string, asked uint32) (string, error) {
			if asked == id {
				return "", errors.New("down")
			}
			return "", nil
		}
		assert.ErrorContains(t, r.Probe(t.Context(), s), "cannot ask the name service whether an account has "+want+": down")
		s.LookUp = func(_ context.Context, _ string, asked uint32) (string, error) {
			if asked == id {
				return "carol", nil
			}
			return "", nil
		}
		assert.ErrorContains(t, r.Probe(t.Context(), s), "carol has "+want+" of your range")
	}
}

// TestHost asks the name service of this machine.
func TestHost(t *testing.T) {
	seen := map[string]int{}
	require.NoError(t, Host.List(t.Context(), "passwd", func(line string) { seen[line]++ }))
	found := 0
	for line := range seen {
		if strings.HasPrefix(line, "root:") && strings.Count(line, ":") == 6 {
			found++
		}
	}
	assert.Equal(t, 1, found, seen)
	for database, want := range map[string]string{"passwd": "root", "group": "group root"} {
		name, err := Host.LookUp(t.Context(), database, 0)
		assert.NoError(t, err)
		assert.Equal(t, want, name)
		name, err = Host.LookUp(t.Context(), database, 1<<31-2)
		assert.NoError(t, err)
		assert.Empty(t, name)
	}
	late, cancel := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
	defer cancel()
	assert.ErrorContains(t, Host.List(late, "passwd", func(string) {}), "does not answer in time")
}

// TestLinesOfAWriter requires lines whole, however they arrive.
func TestLinesOfAWriter(t *testing.T) {
	var got []string
	w := &lineWriter{pass: func(line string) { got = append(got, line) }}
	for _, part := range []string{"a", "b\nc\n\nd", "e", "\n"} {
		n, err := w.Write([]byte(part))
		require.NoError(t, err)
		assert.Equal(t, len(part), n)
	}
	assert.Equal(t, []string{"ab", "c", "", "de"}, got)
	_, err := w.Write(make([]byte, lineMost+1))
	assert.Error(t, err)
}

func TestReadProcesses(t *testing.T) {
	uids, gids, err := ReadProcesses("/proc")
	require.NoError(t, err)
	ids := func(owners []Owner) (list []uint32) {
		for _, o := range owners {
			list = append(list, o.ID)
		}
		return list
	}
	assert.Contains(t, ids(uids), uint32(os.Getuid()))
	assert.Contains(t, ids(gids), uint32(os.Getgid()))

	proc := t.TempDir()
	for name, namespace := range map[string]string{
		"self": "user:[1]", "7": "user:[1]", "8": "user:[2]", "9": "user:[1]",
	} {
		require.NoError(t, os.MkdirAll(filepath.Join(proc, name, "ns"), 0o700))
		require.NoError(t, os.Symlink(namespace, filepath.Join(proc, name, "ns/user")))
	}
	const status = "Name:\tx\nUid:\t1\t2\t3\t4\nGid:\t5\t6\t7\t8\nFDSize:\t64\nGroups:\t9 10 \n"
	for _, name := range []string{"7", "8"} {
		require.NoError(t, os.WriteFile(filepath.Join(proc, name, "status"), []byte(status), 0o600))
	}
	uids, gids, err = ReadProcesses(proc)
	require.NoError(t, err)
	assert.Equal(t, []uint32{1, 2, 3, 4}, ids(uids))
	assert.Equal(t, []uint32{5, 6, 7, 8, 9, 10}, ids(gids))
	assert.Equal(t, "process 7", uids[0].Name)
}
