// SPDX-License-Identifier: Apache-2.0

package sourcetest

import (
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/stretchr/testify/require"
)

// Registry describes a registry for a test.
type Registry struct {
	TLS      bool
	Password string       // asked for unless it is empty, with any name of a user
	Listener net.Listener // nil: on loopback
}

// Start starts the registry with an image hpc/debian:13. It returns its address and, with TLS, the file with its
// certificate.
func (r Registry) Start(t testing.TB, image v1.Image) (address, authority string) {
	t.Helper()
	inner := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	open := httptest.NewServer(inner) // for the push
	reference, err := name.ParseReference(strings.TrimPrefix(open.URL, "http://") + "/hpc/debian:13")
	require.NoError(t, err)
	require.NoError(t, remote.Write(reference, image))
	open.Close()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if _, given, _ := q.BasicAuth(); r.Password != "" && given != r.Password {
			w.Header().Set("WWW-Authenticate", `Basic realm="test"`)
			http.Error(w, `{"errors":[{"code":"UNAUTHORIZED","message":"authentication required"}]}`,
				http.StatusUnauthorized)
			return
		}
		inner.ServeHTTP(w, q)
	}))
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	if r.Listener != nil {
		server.Listener.Close()
		server.Listener = r.Listener
	}
	if r.TLS {
		server.StartTLS()
		authority = filepath.Join(t.TempDir(), "ca.pem")
		text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
		require.NoError(t, os.WriteFile(authority, text, 0o644))
	} else {
		server.Start()
	}
	t.Cleanup(server.Close)
	_, address, _ = strings.Cut(server.URL, "://")
	return address, authority
}

// Credentials returns the text of a file of docker login with a user's password for a registry.
func Credentials(address, user, password string) string {
	return fmt.Sprintf(`{"auths": {%q: {"auth": %q}}}`, address,
		base64.StdEncoding.EncodeToString([]byte(user+":"+password)))
}
