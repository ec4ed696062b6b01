// SPDX-License-Identifier: Apache-2.0

package https

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestEnvironmentHasNoSay(t *testing.T) {
	t.Setenv("HTTPS_PROXY", "http://127.0.0.1:1")
	assert.Nil(t, client(nil, time.Second).Transport.(*http.Transport).Proxy)
}

func TestNoCertificateAmongTheAuthorities(t *testing.T) {
	_, ok := New([]byte("x"), time.Second)
	assert.False(t, ok)
	_, ok = New(nil, time.Second)
	assert.True(t, ok)
}
