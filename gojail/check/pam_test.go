// SPDX-License-Identifier: Apache-2.0

package check

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// writeSystem creates files of the node; text that begins with "->" is the target of a link.
func (n *checkedNode) writeSystem(t *testing.T, files map[string]string) {
	t.Helper()
	n.rootIn = filepath.Join(n.dir, "node")
	require.NoError(t, os.MkdirAll(n.rootIn+"/run/systemd/system", 0o755))
	for name, text := range files {
		path := filepath.Join(n.rootIn, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		if len(text) > 2 && text[:2] == "->" {
			require.NoError(t, os.Symlink(text[2:], path))
		} else {
			require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
		}
	}
}

// Systemd of a user runs what the user wrote in the jail: its start at a login makes sessions in jails void.
func TestCheckOfTheUserManager(t *testing.T) {
	const (
		login     = "[login]\njail = \"a\"\nnodes = [\"n1\"]\n"
		elsewhere = "[login]\njail = \"a\"\nnodes = [\"n2\"]\n"
		sshd      = "etc/pam.d/sshd"
		common    = "etc/pam.d/common-session"
		systemd   = "session\toptional\tpam_systemd.so \n"
		mask      = "etc/systemd/system/user@.service"
		runtime   = "run/systemd/system/user@.service"
	)
	for name, test := range map[string]struct {
		config string
		files  map[string]string
		want   string // the files and services that the finding names; "": no finding
	}{
		"Debian's":            {login, map[string]string{sshd: "@include common-session\n", "etc/pam.d/su": "@include common-session\n", common: systemd}, "(/etc/pam.d/common-session) starts systemd for the user at a login by sshd, su, on"},
		"of a compute node":   {"[session]\n", map[string]string{sshd: "@include common-session\n", common: systemd}, "a login by sshd, on"},
		"without sessions":    {elsewhere, map[string]string{sshd: systemd}, ""},
		"Red Hat's":           {login, map[string]string{sshd: "session include password-auth\n", "etc/pam.d/password-auth": "-session optional pam_systemd.so\n"}, "(/etc/pam.d/password-auth)"},
		"substack":            {login, map[string]string{"etc/pam.d/login": "session substack system-auth\n", "etc/pam.d/system-auth": systemd}, "a login by login, on"},
		"su -":                {login, map[string]string{"etc/pam.d/su-l": "session\t\tinclude\t\tsu\n", "etc/pam.d/su": "session include x\n", "etc/pam.d/x": systemd}, "a login by su, su-l, on"},
		"of the vendor":       {login, map[string]string{"usr/lib/pam.d/login": systemd}, "(/usr/lib/pam.d/login)"},
		"replaced":            {login, map[string]string{"usr/lib/pam.d/login": systemd, "etc/pam.d/login": "session required pam_unix.so\n"}, ""},
		"control in brackets": {login, map[string]string{sshd: "session [success=ok default=bad] /lib/security/pam_systemd.so kill\n"}, "a login by sshd, on"},
		"continued":           {login, map[string]string{sshd: "session \\\n  optional \\\n pam_systemd.so"}, "a login by sshd, on"},
		"comment":             {login, map[string]string{sshd: "# " + systemd + "session required pam_unix.so # pam_systemd.so\n"}, ""},
		"another kind":        {login, map[string]string{sshd: "account include common-session\naccount optional pam_systemd.so\n", common: systemd}, ""},
		"another module":      {login, map[string]string{sshd: "session optional pam_systemd_home.so\n"}, ""},
		"another service":     {login, map[string]string{"etc/pam.d/systemd-user": systemd}, ""},
		"a circle":            {login, map[string]string{sshd: "@include common-session\n", common: "@include sshd\nsession include common-session\n"}, ""},
		"masked":              {login, map[string]string{sshd: systemd, mask: "->/dev/null"}, ""},
		"masked until a boot": {login, map[string]string{sshd: systemd, runtime: "->/dev/null"}, ""},
		"another unit":        {login, map[string]string{sshd: systemd, mask: "->/usr/lib/systemd/system/user@.service"}, "a login by sshd, on"},
		"unmasked in /etc":    {login, map[string]string{sshd: systemd, mask: "[Service]\n", runtime: "->/dev/null"}, "a login by sshd, on"},
	} {
		t.Run(name, func(t *testing.T) {
			n := newGoodNode(t)
			n.configure(t, test.config)
			n.writeSystem(t, test.files)
			found := n.listFindings()
			if test.want == "" {
				assert.NotContains(t, found, "starts systemd")
				return
			}
			assert.Regexp(t, `(?m)^FAIL  sessions: pam_systemd\.so .* run: systemctl mask user@\.service`, found)
			assert.Contains(t, found, test.want)
		})
	}
	n := newGoodNode(t)
	n.configure(t, login)
	n.writeSystem(t, map[string]string{sshd: systemd})
	require.NoError(t, os.Remove(n.rootIn+"/run/systemd/system"))
	assert.NotContains(t, n.listFindings(), "starts systemd", "systemd is not process 1")
}

// What sshd's stack includes counts as its own lines do.
func TestCheckOfIncludedPAM(t *testing.T) {
	n := newGoodNode(t)
	n.configure(t, "[session]\n")
	n.writeSystem(t, map[string]string{"etc/pam.d/sshd": "@include common\n", "etc/pam.d/common": "account required pam_slurm_adopt.so\nsession required pam_env.so user_readenv=1\n"})
	found := n.listFindings()
	assert.Contains(t, found, "remove user_readenv=1 from /etc/pam.d/common")
	assert.NotContains(t, found, "no pam_slurm_adopt")
}

// TestCheckOfAdoption covers what pam_slurm_adopt depends on, and modules with which gojail-session refuses every session.
func TestCheckOfAdoption(t *testing.T) {
	const (
		adopt     = "account required pam_slurm_adopt.so join_container=false nodename=n1\n"
		joins     = "account required pam_slurm_adopt.so nodename=n1\n"
		container = "JobContainerType=job_container/tmpfs\n"
		contain   = "PrologFlags=Alloc,contain\n"
	)
	for name, test := range map[string]struct{ conf, pam, want string }{
		"none":                {contain, "", "WARN  sessions: no pam_slurm_adopt: "},
		"good":                {contain, adopt, ""},
		"by X11":              {"PrologFlags=X11\n", adopt, ""},
		"without extern step": {"PrologFlags=Alloc\n", adopt, "WARN  sessions: pam_slurm_adopt: without PrologFlags=Contain jobs have no cgroup for sessions; write PrologFlags=Contain"},
		"joins a container":   {contain + container, joins, "FAIL  sessions: pam_slurm_adopt puts sessions into the mounts of JobContainerType=job_container/tmpfs"},
		"joins none":          {contain + container, adopt, ""},
		"no container":        {contain + "JobContainerType=job_container/none\n", joins, ""},
		"namespaces":          {contain, adopt + "session required pam_namespace.so\n", ""},
		"ended before":        {contain, "account include password-auth\n" + adopt, "WARN  sessions: PAM does not reach the line of pam_slurm_adopt.so: pam_localuser.so in /etc/pam.d/password-auth ends the account lines before: sessions of users in /etc/passwd are not in their job's cgroup; move the line of pam_slurm_adopt.so from /etc/pam.d/sshd to /etc/pam.d/sshd, above"},
		"a substack ends":     {contain, "account substack password-auth\n" + adopt, ""},
		"jumped over":         {contain, "account [success=1 default=ignore] pam_unix.so\n" + adopt, "WARN  sessions: PAM does not reach the line of pam_slurm_adopt.so: pam_unix.so in /etc/pam.d/sshd"},
		"jumped to":           {contain, "account [success=1 default=ignore] pam_unix.so\naccount requisite pam_deny.so\n" + adopt, ""},
		"for administrators":  {contain, "account sufficient pam_access.so\n" + adopt, ""},
		"a group is let in":   {contain, adopt + "account [success=1 default=ignore] pam_succeed_if.so user ingroup a\naccount requisite pam_deny.so\n", ""},
		"a list, or nobody":   {contain, adopt + "account sufficient pam_listfile.so\naccount required pam_deny.so\n", ""},
		"others jump":         {contain, "account [success=ignore default=1] pam_succeed_if.so uid >= 1000\n" + adopt, ""},
		"system users":        {contain, "account sufficient pam_usertype.so issystem\n" + adopt, ""},
		"all end before":      {contain, "account [success=done default=done] pam_access.so\n" + adopt, "WARN  sessions: PAM does not reach the line of pam_slurm_adopt.so: pam_access.so in /etc/pam.d/sshd"},
		"or an administrator": {contain, "account sufficient pam_slurm_adopt.so nodename=n1\naccount required pam_access.so\n", ""},
		"in brackets":         {contain, "account [success=ok new_authtok_reqd=ok default=bad] pam_slurm_adopt.so nodename=n1\n", ""},
		"without effect":      {contain, "account [default=ignore] pam_slurm_adopt.so nodename=n1\n", "WARN  sessions: pam_slurm_adopt.so is [default=ignore] in /etc/pam.d/sshd: users without a job get past it"},
		"another's control":   {contain, "Account Required pam_slurm_adopt.so nodename=n1\n", ""},
		"refused":             {contain, adopt + "account required pam_deny.so\n", "FAIL  sessions: the account line of pam_deny.so in /etc/pam.d/sshd refuses every session by ssh"},
		"logind":              {contain, adopt + "session optional pam_systemd.so\n", "WARN  sessions: pam_systemd.so in /etc/pam.d/sshd takes sessions out of the cgroup into which pam_slurm_adopt has put them; remove the line"},
		"not by ssh":          {contain, "password required pam_deny.so\n" + adopt, ""},
	} {
		t.Run(name, func(t *testing.T) {
			n := newGoodNode(t)
			n.configure(t, "[session]\n")
			n.writeFile(t, "slurm/slurm.conf", "SlurmdSpoolDir=/spool\n"+test.conf, 0o644)
			n.writeSystem(t, map[string]string{"etc/pam.d/sshd": test.pam, "etc/pam.d/password-auth": "account sufficient pam_localuser.so\n"})
			found := n.listFindings()
			if test.want == "" {
				assert.NotRegexp(t, "pam_slurm_adopt|pam_namespace|pam_deny", found)
				return
			}
			assert.Contains(t, found, test.want)
		})
	}
}

// TestCheckOfForwarding covers sshd's settings by which ports are forwarded; keys and values are those that sshd -T prints.
func TestCheckOfForwarding(t *testing.T) {
	for _, test := range []struct {
		allow, disable string
		adopts, warns  bool
	}{
		{"yes", "no", false, true}, {"local", "no", false, true}, {"remote", "no", false, true}, {"all", "", false, true},
		{"no", "no", false, false}, {"yes", "yes", false, false}, {"yes", "no", true, false}, {"", "", false, false},
	} {
		found := ""
		c := &checker{report: func(f Finding) { found += f.Found }}
		c.checkForwarding(map[string]string{"allowtcpforwarding": test.allow, "disableforwarding": test.disable}, test.adopts)
		assert.Equal(t, test.warns, strings.Contains(found, "sshd forwards ports (ssh -N -L) for users without a job"), test)
	}
}

// TestAcceptedVariables covers sshd's patterns, of which each has a line in what sshd prints.
func TestAcceptedVariables(t *testing.T) {
	accepts := map[string]string{"acceptenv": "LANG LC_* SLURM_J??_ID"}
	assert.Equal(t, "SLURM_JOB_ID", findAccepted(accepts, "SLURM_JAIL", "SLURM_JOB_ID"))
	assert.Equal(t, "LC_ALL", findAccepted(accepts, "LC_ALL"))
	assert.Empty(t, findAccepted(accepts, "SLURM_JAIL", "LD_PRELOAD"))
	assert.Equal(t, "LD_PRELOAD", findAccepted(map[string]string{"acceptenv": "*"}, "LD_PRELOAD"))
	assert.Empty(t, findAccepted(map[string]string{}, "LANG"))
}
