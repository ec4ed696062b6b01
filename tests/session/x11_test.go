// SPDX-License-Identifier: Apache-2.0

package session_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/tests/harness"
)

const (
	// display99 is an X server, in so far as it listens where one would, and answers a client that has the cookie.
	display99 = `$s = IO::Socket::INET->new(Listen => 5, LocalAddr => "127.0.0.1:6099", ReuseAddr => 1) or die $!;
while ($c = $s->accept) { read $c, $b, 48; print $c unpack("H*", substr $b, 32) eq "` + cookie + `" ? "welcome" : "refused"; close $c }`
	cookie = "0123456789abcdef0123456789abcdef"

	// window is an X program, in so far as it finds the server and the cookie, and begins as the X Window System Protocol says: byte
	// order, version, the lengths of the name and the data of the authorization, both padded.
	window = `cookie=$(xauth list $DISPLAY | cut -d' ' -f5); n=${DISPLAY#*:}; exec 3<>/dev/tcp/localhost/$((6000 + ${n%.*}))
printf 'l\0\013\0\0\0\022\0\020\0\0\0MIT-MAGIC-COOKIE-1\0\0' >&3; printf $(echo $cookie | sed 's/../\\x&/g') >&3; cat <&3`
)

// startDisplay starts the X server of the client's, and gives alice its cookie.
func (s *site) startDisplay(t *testing.T) {
	t.Helper()
	s.startInBackground(t, harness.Alice, "perl", "-MIO::Socket", "-e", display99)
	require.True(t, harness.Poll(harness.Timeout, func() bool { return s.Root("bash", "-c", "exec 3<>/dev/tcp/localhost/6099").Code == 0 }))
	require.Zero(t, s.Run(harness.Alice, "xauth", "-q", "add", "localhost:99", ".", cookie).Code)
}

// runX11 runs a command by ssh -Y, on the display of startDisplay.
func (s *site) runX11(port, command string) harness.Result {
	return s.Do(harness.Command{User: harness.Alice, Env: []string{"DISPLAY=localhost:99"}, Args: append(listSSHArguments("ssh", port), "-Y", "127.0.0.1", command)})
}

// TestX11IsForwarded requires that a program in the jail reaches the client's X server, with a cookie in the jail's home directory and
// none in the node's.
func TestX11IsForwarded(t *testing.T) {
	s := sharedSite(t)
	s.startJob(t, harness.Alice, "--jail=debian")
	s.startDisplay(t)
	for _, port := range []string{forced, shells} {
		requireOutput(t, "welcome", s.runX11(port, window))
		r := s.runX11(port, "stat -c '%U %a' ~/.Xauthority; echo $DISPLAY")
		assert.Regexp(t, `^alice 600\nlocalhost:\d+\.0\n$`, r.Stdout, r)
	}
	assert.Equal(t, "1\n", s.Run(harness.Alice, "sh", "-c", "xauth list | wc -l").Stdout, "the node's home has the cookie of display 99 only")

	require.NoError(t, os.Rename(s.Path("/srv/jails/debian/usr/bin/xauth"), s.Path("/srv/jails/debian/usr/bin/xauth.was")))
	t.Cleanup(func() {
		require.NoError(t, os.Rename(s.Path("/srv/jails/debian/usr/bin/xauth.was"), s.Path("/srv/jails/debian/usr/bin/xauth")))
	})
	r := s.runX11(forced, "echo came in")
	assert.Equal(t, "came in\n", r.Stdout, r)
	assert.Regexp(t, `^gojail: X11 programs will be refused by your X server: cannot execute xauth in the jail: No such file or directory; [^\n]*\n$`, r.Stderr, r)
}

// TestX11WithoutAJob requires that a session that is refused says so once.
func TestX11WithoutAJob(t *testing.T) {
	s := sharedSite(t)
	s.startDisplay(t)
	for _, port := range []string{forced, shells} {
		requireRefused(t, "you have no job in a jail on this node", s.runX11(port, "true"))
	}
}
