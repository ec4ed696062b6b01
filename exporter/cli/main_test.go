// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// newCommands makes a directory with commands that print what those of a release printed.
func newCommands(t *testing.T, release string) string {
	t.Helper()
	data, err := filepath.Abs("../../internal/slurm/testdata/" + release)
	require.NoError(t, err)
	dir := t.TempDir()
	for name, text := range map[string]string{
		"scontrol": "case \"$*\" in\n--version) cat version.txt;;\nping) cat ping.txt;;\n*--json=v0.0.42*) cat nodes.json;;\n*) cat nodes.txt;;\nesac",
		"squeue":   "for a; do case $a in --format=*) m=${a#--format=};; esac; done\nsed \"s/^@/${m%%\x1f*}/\" squeue.txt",
		"sdiag":    "case \"$*\" in\n*--json=v0.0.42*) cat sdiag.json;;\n*) cat sdiag.txt;;\nesac",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\ncd "+data+"\n"+text+"\n"), 0o755))
	}
	return dir
}

// execute runs the program with arguments to its end.
func execute(ctx context.Context, args ...string) (stdout, stderr string, err error) {
	var out, log bytes.Buffer
	root := NewCommand()
	root.SetArgs(args)
	root.SetOut(&out)
	root.SetErr(&log)
	err = root.ExecuteContext(ctx)
	return out.String(), log.String(), err
}

func TestOnce(t *testing.T) {
	for release, format := range map[string]string{"22.05": "text", "24.11": "json", "26.05": "json"} {
		out, log, err := execute(t.Context(), "--once", "--slurm-bin="+newCommands(t, release))
		require.NoError(t, err, release)
		assert.Empty(t, log)
		assert.Contains(t, out, `gojail_exporter_slurm_info{format="`+format+`",release="`+release+`.`)
		assert.Contains(t, out, "\n"+`gojail_slurm_node_gpus_allocated{node="n1",type="h100"} 1`+"\n", release)
		assert.Contains(t, out, "\n"+`gojail_slurm_rpc_calls_total{rpc="REQUEST_SUBMIT_BATCH_JOB"} 7`+"\n", release)
		assert.Contains(t, out, "\n"+`gojail_slurm_jobs{state="running"} 2`+"\n", release)
	}
}

// TestCommandsThatMisbehave: the page is there, and says of which command there is no data.
func TestCommandsThatMisbehave(t *testing.T) {
	for text, want := range map[string]string{
		"exec sleep 100":    `reason="timeout",source="jobs"} 2`,
		"exec yes":          `reason="output",source="jobs"} 2`,
		"echo no >&2;false": `reason="command",source="jobs"} 2`,
		"kill -9 $$":        `reason="command",source="jobs"} 2`,
	} {
		dir := newCommands(t, "24.11")
		require.NoError(t, os.WriteFile(dir+"/squeue", []byte("#!/bin/sh\n"+text+"\n"), 0o755))
		out, log, err := execute(t.Context(), "--once", "--timeout=1s", "--slurm-bin="+dir)
		assert.EqualError(t, err, "cannot read jobs from Slurm: the lines above say why", text)
		assert.Contains(t, out, "gojail_exporter_command_failures_total{"+want)
		assert.Contains(t, out, `gojail_exporter_data_stale{source="jobs"} 1`)
		assert.Contains(t, out, `gojail_slurm_node_state{node="n1"`)
		assert.NotContains(t, out, "gojail_slurm_jobs{")
		assert.Equal(t, 1, strings.Count(log, "level=WARN"), log)
	}
	_, _, err := execute(t.Context(), "--once", "--slurm-bin="+t.TempDir())
	assert.EqualError(t, err, "slurmctld does not answer; see: scontrol ping")
}

// TestFormatThatSlurmLacks: --once fails where Slurm has no JSON of the version that is read, and says what to do. With auto it
// reads text.
func TestFormatThatSlurmLacks(t *testing.T) {
	const hint = "; if Slurm's plugins for JSON (data_parser, serializer/json) are missing, use --format=auto, which reads text then"
	for _, row := range []struct {
		format       string
		lacking      []string // commands that print no JSON
		want, series string
	}{
		{"json", nil, "", "gojail_slurm_node_state{"},
		{"json", []string{"scontrol"}, "cannot read nodes from Slurm: the lines above say why" + hint, "gojail_slurm_rpc_calls_total{"},
		{"json", []string{"sdiag"}, "cannot read diag from Slurm: the lines above say why" + hint, "gojail_slurm_node_state{"},
		{"json", []string{"scontrol", "sdiag"}, "cannot read nodes, diag from Slurm: the lines above say why" + hint, "gojail_slurm_jobs{"},
		{"auto", []string{"scontrol", "sdiag"}, "", "gojail_slurm_node_state{"},
		{"text", []string{"scontrol", "sdiag"}, "", "gojail_slurm_node_state{"},
	} {
		dir := newCommands(t, "24.11")
		for _, name := range row.lacking {
			text, err := os.ReadFile(dir + "/" + name)
			require.NoError(t, err)
			lines := strings.SplitAfterN(string(text), "\n", 2)
			refusal := "case \"$*\" in *--json*) echo \"" + name + ": error: Couldn't find the specified plugin name for data_parser/v0.0.42 looking at all files\" >&2; exit 1;; esac\n"
			require.NoError(t, os.WriteFile(dir+"/"+name, []byte(lines[0]+refusal+lines[1]), 0o755))
		}
		out, log, err := execute(t.Context(), "--once", "--format="+row.format, "--slurm-bin="+dir)
		if row.want == "" {
			assert.NoError(t, err, row)
			assert.Empty(t, log, row)
		} else {
			assert.EqualError(t, err, row.want, row)
		}
		assert.Contains(t, out, "\n"+row.series, row)
	}
}

func TestMistakesInFlags(t *testing.T) {
	for args, want := range map[string]string{
		"--interval=1s":              "--interval 1s is too short for slurmctld; choose 10s or more",
		"--timeout=2m":               "--timeout 2m0s is not between 1s and --interval, which is 1m0s",
		"--max-age=1m":               "--max-age 1m0s is too short: one failure would hide the data; choose two intervals, 2m0s, or more",
		"--format=yaml":              `--format "yaml" is not known; choose auto, json or text`,
		"--rpc-users=-1":             "--rpc-users -1 is not between 0 and 1000",
		"--web-config=/nowhere":      "--web-config /nowhere: open /nowhere: no such file or directory",
		"--listen-address=nowhere:x": "cannot serve metrics: listen tcp: lookup tcp/x: unknown port",
	} {
		_, _, err := execute(t.Context(), args, "--slurm-bin="+newCommands(t, "24.11"))
		assert.EqualError(t, err, want, args)
	}
}

// findPort returns a port of this host that was free a moment ago.
func findPort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	return l.Addr().String()
}

// start starts the program for the test.
func start(t *testing.T, args ...string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, _, err := execute(ctx, append(args, "--slurm-bin="+newCommands(t, "24.11"))...)
		ended <- err
	}()
	t.Cleanup(func() {
		cancel()
		assert.NoError(t, <-ended)
	})
}

// get waits until a server answers.
func get(t *testing.T, client *http.Client, url, password string) (code int, text string) {
	t.Helper()
	var last error
	for begin := time.Now(); time.Since(begin) < time.Minute; time.Sleep(20 * time.Millisecond) {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
		require.NoError(t, err)
		if password != "" {
			request.SetBasicAuth("prometheus", password)
		}
		answer, err := client.Do(request)
		if last = err; err != nil {
			continue
		}
		body, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		require.NoError(t, err)
		return answer.StatusCode, string(body)
	}
	require.NoError(t, last)
	return 0, ""
}

func TestServes(t *testing.T) {
	address := findPort(t)
	start(t, "--listen-address="+address)
	code, text := get(t, http.DefaultClient, "http://"+address+"/", "")
	assert.Equal(t, 200, code)
	assert.Contains(t, text, `href="/metrics"`)
	require.Eventually(t, func() bool {
		code, text = get(t, http.DefaultClient, "http://"+address+"/metrics", "")
		return strings.Contains(text, "gojail_slurm_controller_up 1")
	}, time.Minute, 20*time.Millisecond)
	assert.Equal(t, 200, code)
	assert.Contains(t, text, "process_cpu_seconds_total")
}

func TestListensOnLoopbackByDefault(t *testing.T) {
	address, _, err := net.SplitHostPort(NewCommand().Flags().Lookup("listen-address").DefValue[len("[") : len("[")+len(defaultAddress)])
	require.NoError(t, err)
	assert.True(t, net.ParseIP(address).IsLoopback())
}

// TestTLSAndAuthentication: the file of exporter-toolkit works.
func TestTLSAndAuthentication(t *testing.T) {
	dir := t.TempDir()
	pool := makeCertificate(t, dir)
	// The password is "secret", hashed with bcrypt.
	config := fmt.Sprintf("tls_server_config:\n  cert_file: %[1]s/cert.pem\n  key_file: %[1]s/key.pem\nbasic_auth_users:\n  prometheus: %[2]s\n", dir,
		"$2a$04$DytG0U1SpW3dtSJa5xF5L.XUPpQNODj6QYRN7ebauu/dR0Rm/CBm2")
	require.NoError(t, os.WriteFile(dir+"/web.yml", []byte(config), 0o600))
	address := findPort(t)
	start(t, "--listen-address="+address, "--web-config="+dir+"/web.yml")
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}}
	defer client.CloseIdleConnections()
	code, _ := get(t, client, "https://"+address+"/metrics", "")
	assert.Equal(t, 401, code)
	code, _ = get(t, client, "https://"+address+"/metrics", "wrong")
	assert.Equal(t, 401, code)
	code, text := get(t, client, "https://"+address+"/metrics", "secret")
	assert.Equal(t, 200, code)
	assert.Contains(t, text, "gojail_exporter_build_info")
	code, _ = get(t, http.DefaultClient, "http://"+address+"/metrics", "secret")
	assert.Equal(t, 400, code, "there is no way around TLS")
}

// makeCertificate writes the certificate of this host and its key, and returns who trusts it.
func makeCertificate(t *testing.T, dir string) *x509.CertPool {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		IsCA: true, BasicConstraintsValid: true,
	}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	require.NoError(t, err)
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	for name, block := range map[string]*pem.Block{"cert.pem": {Type: "CERTIFICATE", Bytes: cert}, "key.pem": {Type: "PRIVATE KEY", Bytes: secret}} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), pem.EncodeToMemory(block), 0o600))
	}
	pool := x509.NewCertPool()
	require.True(t, pool.AppendCertsFromPEM(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert})))
	return pool
}
