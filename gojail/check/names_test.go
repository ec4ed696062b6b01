// SPDX-License-Identifier: Apache-2.0

package check

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/gojail/subids"
)

const (
	localUsers  = "root:x:0:0:root:/root:/bin/sh\nalice:x:1001:1001::/nonexistent:/bin/sh\nnobody:x:65534:65534::/nonexistent:/bin/sh\n"
	sssd        = "passwd:\t files sss # of authselect\ngroup: files sss\n"
	sssMount    = "[[jail.a.mounts]]\ndestination = \"/var/lib/sss/pipes\"\nsource = \"DIR/var/lib/sss/pipes\"\noptions = [\"rbind\"]\n"
	passwdMount = "[[jail.a.mounts]]\ndestination = \"/etc/passwd\"\nsource = \"DIR/var/lib/users/passwd\"\noptions = [\"bind\", \"ro\"]\n"
	carol       = "carol:*:70001:70001::/nonexistent:/bin/sh\n"
	numbers     = "not in /etc/passwd of this node, but known to its name service: in the jail there are numbers for names"
)

// nameRows are what a node and a jail know of users, and whom the check names.
var nameRows = map[string]struct {
	listed   string            // by the name service, beside the users of passwd
	node     map[string]string // files below its root
	jail     map[string]string
	more     string // of gojail.toml
	want     string
	gap      string // the end of the warning
	hasNoEnd bool   // the name service does not answer
}{
	"local users only":             {},
	"sssd is named, and not there": {node: map[string]string{"etc/nsswitch.conf": sssd}},
	"a listed user":                {listed: carol, want: "carol (70001) is ", gap: "its nsswitch.conf names no such service"},
	"a system user of systemd's":   {listed: "systemd-oom:!*:998:998::/:/usr/sbin/nologin\n"},
	"a listed nobody":              {listed: "nobody:*:65534:65534::/:/usr/sbin/nologin\n"},
	"a large number":               {listed: "dave:*:1915600501:1915600501::/nonexistent:/bin/sh\n", want: "dave (1915600501) is "},
	"sssd that lists nobody":       {node: map[string]string{"etc/nsswitch.conf": sssd, "var/lib/sss/pipes/nss": ""}, want: "users of sss (nsswitch.conf) are "},
	"nslcd that lists nobody":      {node: map[string]string{"etc/nsswitch.conf": "passwd: files ldap\n", "run/nslcd/socket": ""}, want: "users of ldap (nsswitch.conf) are "},
	"no answer":                    {hasNoEnd: true},
	"the jail has a file with all users": {listed: carol, node: map[string]string{"var/lib/users/passwd": localUsers + carol}, jail: map[string]string{"etc/passwd": ""},
		more: passwdMount},
	"the file in the jail lacks one": {listed: carol, node: map[string]string{"var/lib/users/passwd": localUsers}, jail: map[string]string{"etc/passwd": ""},
		more: passwdMount, want: "carol (70001) is "},
	"the jail has a file, and sssd lists nobody": {node: map[string]string{"etc/nsswitch.conf": sssd, "var/lib/sss/pipes/nss": "", "var/lib/users/passwd": localUsers},
		jail: map[string]string{"etc/passwd": ""}, more: passwdMount},
	"the jail's own file has the user": {listed: carol, jail: map[string]string{"etc/passwd": localUsers + carol}},
	"the jail asks sssd": {listed: carol, node: map[string]string{"var/lib/sss/pipes/nss": ""}, more: sssMount,
		jail: map[string]string{"etc/nsswitch.conf": sssd, "lib64/libnss_sss.so.2": "", "var/lib/sss/pipes/.keep": ""}},
	"the jail lacks the module": {listed: carol, node: map[string]string{"var/lib/sss/pipes/nss": ""}, more: sssMount,
		jail: map[string]string{"etc/nsswitch.conf": sssd, "var/lib/sss/pipes/.keep": ""}, want: "carol (70001) is ",
		gap: "its nsswitch.conf names sss, and it lacks libnss_sss.so.2"},
	"the jail lacks the socket": {listed: carol,
		jail: map[string]string{"etc/nsswitch.conf": sssd, "lib64/libnss_sss.so.2": ""}, want: "carol (70001) is ",
		gap: "its nsswitch.conf names sss, and it lacks a mount of /var/lib/sss/pipes"},
	"the jail has the socket alone": {listed: carol, node: map[string]string{"var/lib/sss/pipes/nss": ""}, more: strings.ReplaceAll(sssMount, "/pipes\"", "/pipes/nss\""),
		jail: map[string]string{"etc/nsswitch.conf": sssd, "lib64/libnss_sss.so.2": "", "var/lib/sss/pipes/nss": ""}, want: "carol (70001) is ",
		gap: "its nsswitch.conf names sss, and it lacks a mount of /var/lib/sss/pipes"},
	"the jail lacks both": {listed: carol, jail: map[string]string{"etc/nsswitch.conf": sssd}, want: "carol (70001) is ",
		gap: "its nsswitch.conf names sss, and it lacks libnss_sss.so.2 and a mount of /var/lib/sss/pipes"},
	"the jail lacks all of winbind": {listed: carol, jail: map[string]string{"etc/nsswitch.conf": "passwd: files winbind # ad\n"}, want: "carol (70001) is ",
		gap: "its nsswitch.conf names winbind, and it lacks libnss_winbind.so.2 and a mount of /run/samba/winbindd"},
	"the jail has a module of nslcd and its own /run": {listed: carol, jail: map[string]string{"etc/nsswitch.conf": "passwd: files ldap\n", "usr/lib/libnss_ldap.so.2": ""},
		want: "carol (70001) is ", gap: "its nsswitch.conf names ldap, and it lacks a mount of /run/nslcd"},
	"the jail asks nslcd": {listed: carol, node: map[string]string{"run/nslcd/socket": ""}, more: strings.ReplaceAll(sssMount, "/var/lib/sss/pipes", "/run/nslcd"),
		jail: map[string]string{"etc/nsswitch.conf": "passwd: files ldap\n", "usr/lib/libnss_ldap.so.2": "", "run/nslcd/.keep": ""}},
	"the second service is whole": {listed: carol, node: map[string]string{"var/lib/sss/pipes/nss": ""}, more: sssMount,
		jail: map[string]string{"etc/nsswitch.conf": "passwd: files ldap sss\n", "lib64/libnss_sss.so.2": "", "var/lib/sss/pipes/.keep": ""}},
	"the jail does not ask": {listed: carol, node: map[string]string{"var/lib/sss/pipes/nss": ""}, more: sssMount,
		jail: map[string]string{"etc/nsswitch.conf": "passwd: files\n", "lib64/libnss_sss.so.2": "", "var/lib/sss/pipes/.keep": ""}, want: "carol (70001) is "},
}

func TestNamesOfUsers(t *testing.T) {
	for name, test := range nameRows {
		t.Run(name, func(t *testing.T) {
			n := newGoodNode(t)
			n.rootIn = filepath.Join(n.dir, "node")
			n.writeFile(t, "passwd", localUsers, 0o644)
			for dir, files := range map[string]map[string]string{"node": test.node, "jail": test.jail} {
				for path, text := range files {
					require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(n.dir, dir, path)), 0o755))
					n.writeFile(t, filepath.Join(dir, path), text, 0o644)
				}
			}
			n.configure(t, strings.ReplaceAll(test.more, "DIR", n.rootIn))
			n.subIDs = &subids.Source{List: func(_ context.Context, _ string, line func(string)) error {
				if test.hasNoEnd {
					return errors.New("it does not answer in time")
				}
				for text := range strings.Lines(localUsers + test.listed) {
					line(strings.TrimSpace(text))
				}
				return nil
			}, LookUp: func(context.Context, string, uint32) (string, error) { return "", nil }}
			found := n.listFindings()
			if test.want == "" {
				assert.NotContains(t, found, numbers)
				return
			}
			assert.Contains(t, found, "WARN  jail a: "+test.want+numbers)
			assert.Contains(t, found, "fail; "+test.gap)
		})
	}
}
