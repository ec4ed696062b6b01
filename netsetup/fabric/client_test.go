// SPDX-License-Identifier: Apache-2.0

package fabric

import (
	"context"
	"errors"
	"io"
	"log"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/netsetup/fake/fakeufm"
)

const secret = "s3cret:with colon"

func TestMain(m *testing.M) {
	if order := os.Getenv(orderVariable); order != "" {
		os.Exit(runChild(order))
	}
	log.SetOutput(io.Discard) // the server's log of handshakes that fail on purpose
	os.Exit(m.Run())
}

// startUFM returns a UFM, a client of it, and the client's configuration.
func startUFM(t *testing.T) (*fakeufm.UFM, *Client, Config) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("needs root: the credentials must be root's")
	}
	u := fakeufm.Start("admin", secret)
	t.Cleanup(u.Close)
	credentials, ca, err := u.WriteFiles(t.TempDir())
	require.NoError(t, err)
	config := Config{u.URL, credentials, ca}
	return u, openClient(t, config), config
}

func openClient(t *testing.T, config Config) *Client {
	t.Helper()
	c, err := Open(config)
	require.NoError(t, err)
	c.pause, c.answerMax = time.Microsecond, 64<<10
	return c
}

func TestPayloads(t *testing.T) {
	u, c, _ := startUFM(t)
	require.NoError(t, c.changeMembers(t.Context(), "add", 0x11, []GUID{0x0011223344556677, 0xfe}))
	require.NoError(t, c.changeMembers(t.Context(), "remove", 0x11, []GUID{0xfe}))
	require.NoError(t, c.changeMembers(t.Context(), "add", 0x7abc, []GUID{0xfe}))
	members, err := c.ListMembers(t.Context())
	require.NoError(t, err)
	require.Equal(t, map[uint16][]GUID{0x11: {0x0011223344556677}, 0x7abc: {0xfe}, 0x7fff: nil}, members)

	golden, err := os.ReadFile("testdata/payloads")
	require.NoError(t, err)
	require.Equal(t, string(golden), strings.Join(u.Calls(), "\n")+"\n")
}

func TestNothingIsAskedForTheDefaultPartition(t *testing.T) {
	u, c, _ := startUFM(t)
	for _, pkey := range []uint16{0, 0x7fff} {
		require.NoError(t, c.changeMembers(t.Context(), "add", pkey, []GUID{0xfe}))
		require.NoError(t, c.changeMembers(t.Context(), "remove", pkey, []GUID{0xfe}))
	}
	require.NoError(t, c.changeMembers(t.Context(), "add", 0x11, nil))
	require.ErrorContains(t, c.changeMembers(t.Context(), "add", 0x8011, []GUID{0xfe}), "without the membership bit")
	require.ErrorContains(t, c.changeMembers(t.Context(), "add", 0x11, []GUID{0}), "is not a GUID: the VF has none")
	require.Empty(t, u.Calls())
	require.NoError(t, c.changeMembers(t.Context(), "remove", 0x12, []GUID{0xfe}), "of a partition that is not there")
}

func TestOnlyTheRightCertificate(t *testing.T) {
	u, _, config := startUFM(t)
	config.CA = ""
	_, err := openClient(t, config).ListMembers(t.Context())
	require.ErrorContains(t, err, "its certificate is not valid: x509: certificate signed by unknown authority")
	require.NotErrorIs(t, err, ErrUnreachable)
	u2, _, config2 := startUFM(t)
	config.CA = config2.CA // httptest's certificate is the same everywhere, but not for this name:
	config.URL = strings.Replace(u.URL, "127.0.0.1", "localhost", 1)
	_, err = openClient(t, config).ListMembers(t.Context())
	require.ErrorContains(t, err, "its certificate is not valid")
	require.Empty(t, u.Calls())
	require.Empty(t, u2.Calls())
}

func TestFailures(t *testing.T) {
	for _, f := range []struct {
		name  string
		fault func(*fakeufm.UFM)
		want  string
		away  bool
		calls int
	}{
		{"500", func(u *fakeufm.UFM) { u.FailFirst(99, 500) }, "UFM is unreachable: HTTP 500: Internal Server Error", true, 4},
		{"500 twice", func(u *fakeufm.UFM) { u.FailFirst(2, 500) }, "", false, 3},
		{"400", func(u *fakeufm.UFM) { u.Answer(400, "no such GUID\n\x1b[31m") }, "it rejects the call (HTTP 400): no such GUID", false, 1},
		{"cut", func(u *fakeufm.UFM) { u.CutConnection(false) }, "UFM is unreachable: unexpected EOF", true, 4},
		{"huge", func(u *fakeufm.UFM) { u.AnswerEndlessly() }, "the answer is larger than 65536 bytes", false, 1},
		{"garbled", func(u *fakeufm.UFM) { u.Answer(200, "<html>") }, "the answer is not a list of partitions", true, 1},
		{"null", func(u *fakeufm.UFM) { u.Answer(200, "null") }, "the answer is not a list of partitions", true, 1},
		{"strange partition", func(u *fakeufm.UFM) { u.Answer(200, `{"0x10000":{}}`) }, `invalid partition "0x10000"`, true, 1},
		{"strange GUID", func(u *fakeufm.UFM) { u.Answer(200, `{"0x11":{"guids":[{"guid":"x"}]}}`) }, `"x" is not a GUID`, true, 1},
		{"redirect", func(u *fakeufm.UFM) { u.Redirect("https://192.0.2.1") }, "it rejects the call (HTTP 307)", false, 1},
		{"echo", func(u *fakeufm.UFM) { u.Answer(400, "you sent "+secret) }, "you sent ...", false, 1},
	} {
		t.Run(f.name, func(t *testing.T) {
			u, c, _ := startUFM(t)
			f.fault(u)
			_, err := c.ListMembers(t.Context())
			require.Len(t, u.Calls(), f.calls)
			if f.want == "" {
				require.NoError(t, err)
				return
			}
			requireOneLine(t, err)
			require.ErrorContains(t, err, f.want)
			require.ErrorContains(t, err, "UFM 127.0.0.1:")
			require.Equal(t, f.away, errors.Is(err, ErrUnreachable))
		})
	}
}

// requireOneLine requires an error without line breaks and without the password.
func requireOneLine(t *testing.T, err error) {
	t.Helper()
	require.Error(t, err)
	for _, never := range []string{"\n", "\x1b", secret, "s3cret", "YWRtaW46"} {
		require.NotContains(t, err.Error(), never)
	}
}

func TestWrongPasswordIsNotRepeated(t *testing.T) {
	u, _, config := startUFM(t)
	require.NoError(t, os.WriteFile(config.Credentials, []byte("admin:other\n"), 0o600))
	err := openClient(t, config).changeMembers(t.Context(), "add", 0x11, []GUID{0xfe})
	require.ErrorContains(t, err, "rejects the user and password (HTTP 401); correct the credentials file")
	require.NotContains(t, err.Error(), "other")
	require.Len(t, u.Calls(), 1)
}

func TestDeadlineAndCancel(t *testing.T) {
	t.Run("", func(t *testing.T) {
		u, c, _ := startUFM(t)
		u.Hang()
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		_, err := c.ListMembers(ctx)
		require.ErrorIs(t, err, ErrUnreachable)
		require.ErrorContains(t, err, "no answer in time")
		ctx, cancel = context.WithCancel(t.Context())
		cancel()
		_, err = c.ListMembers(ctx)
		require.ErrorIs(t, err, context.Canceled)
		requireOneLine(t, err)
	})
	stacks := func() string { b := make([]byte, 1<<20); return string(b[:runtime.Stack(b, true)]) }
	require.Eventually(t, func() bool { return !strings.Contains(stacks(), "http.(*persistConn)") },
		time.Minute, time.Millisecond, "goroutines are left")
}

func TestNobodyListens(t *testing.T) {
	u, c, _ := startUFM(t)
	c.base.Host = "127.0.0.1:1"
	_, err := c.ListMembers(t.Context())
	require.ErrorIs(t, err, ErrUnreachable)
	require.ErrorContains(t, err, "UFM 127.0.0.1:1: cannot list partitions: UFM is unreachable: dial tcp 127.0.0.1:1: connect: connection refused")
	require.Empty(t, u.Calls())
}

func TestOpenRefuses(t *testing.T) {
	_, _, config := startUFM(t)
	for _, url := range []string{"http://ufm", "https://", "ufm", "https://u:" + secret + "@ufm", "https://ufm/?x=y", "https://ufm:\n"} {
		c := config
		c.URL = url
		_, err := Open(c)
		requireOneLine(t, err)
		require.ErrorContains(t, err, "cannot be UFM's address")
	}
	for _, text := range []string{"", "admin", "admin:", ":x", "a:b\nc:d\n", "a:b\r\x00"} {
		require.NoError(t, os.WriteFile(config.Credentials, []byte(text), 0o600))
		_, err := Open(config)
		require.ErrorContains(t, err, "must hold one line, user:password", "%q", text)
	}
	require.NoError(t, os.WriteFile(config.Credentials, []byte("a:b\n"), 0o600))
	require.NoError(t, os.Chmod(config.Credentials, 0o640))
	_, err := Open(config)
	require.ErrorContains(t, err, "others can read it (mode 0640); run: chmod 600 "+config.Credentials)
	require.NoError(t, os.Chmod(config.Credentials, 0o600))
	require.NoError(t, os.WriteFile(config.CA, []byte("no PEM"), 0o600))
	_, err = Open(config)
	require.ErrorContains(t, err, "holds no certificate")
	config.CA = filepath.Join(filepath.Dir(config.CA), "missing")
	_, err = Open(config)
	require.ErrorContains(t, err, "no such file")
}

func TestEnvironmentHasNoSay(t *testing.T) {
	t.Setenv("HTTPS_PROXY", "http://127.0.0.1:1")
	_, c, _ := startUFM(t)
	_, err := c.ListMembers(t.Context())
	require.NoError(t, err)
}

func TestGUIDs(t *testing.T) {
	for text, want := range map[string]GUID{
		"0011223344556677": 0x0011223344556677, "0011:2233:4455:6677": 0x0011223344556677,
		"00:11:22:33:44:55:66:77": 0x0011223344556677, "0x0011223344556677": 0x0011223344556677,
	} {
		g, err := parseGUID(text)
		require.NoError(t, err)
		require.Equal(t, want, g)
		require.Equal(t, "0011223344556677", g.String())
	}
	for _, text := range []string{"", "11", "0000:0000:0000:0000", "ffffffffffffffff", "00112233445566778", "g011223344556677"} {
		_, err := parseGUID(text)
		require.Error(t, err, text)
	}
}

func FuzzMembers(f *testing.F) {
	f.Add([]byte(`{"0x7fff":{"guids":[{"guid":"0011223344556677","membership":"full"}]}}`))
	f.Add([]byte(`{"0x11":null}`))
	f.Add([]byte(`null`))
	f.Fuzz(func(t *testing.T, text []byte) {
		members, err := parseMembers(text)
		if err != nil {
			require.ErrorIs(t, err, ErrUnreachable)
			require.Less(t, len(err.Error()), 300)
			return
		}
		for pkey, guids := range members {
			require.LessOrEqual(t, pkey, uint16(0x7fff))
			for _, g := range guids {
				require.True(t, g.isValid())
			}
		}
	})
}
