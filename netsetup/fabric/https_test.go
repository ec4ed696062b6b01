// SPDX-License-Identifier: Apache-2.0

package fabric

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestNoProxyFromTheEnvironment(t *testing.T) {
	t.Setenv("HTTPS_PROXY", "http://127.0.0.1:1")
	c, ok := newHTTPClient(nil, time.Second)
	assert.True(t, ok)
	assert.Nil(t, c.Transport.(*http.Transport).Proxy)
}

func TestNoCertificateAmongTheAuthorities(t *testing.T) {
	_, ok := newHTTPClient([]byte("x"), time.Second)
	assert.False(t, ok)
}
