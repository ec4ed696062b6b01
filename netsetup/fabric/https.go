// SPDX-License-Identifier: Apache-2.0

package fabric

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"time"
)

// doRequest sends one request and returns at most most bytes of the answer.
func (c *Client) doRequest(ctx context.Context, method, url string, payload []byte, most int64) (status int,
	answer []byte, err error) {
	req, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(payload))
	if err != nil {
		return 0, nil, err
	}
	req.SetBasicAuth(c.user, c.password)
	req.Header.Set("Accept", "application/json")
	if payload != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	answer, err = io.ReadAll(io.LimitReader(resp.Body, most))
	return resp.StatusCode, answer, err
}

// newHTTPClient returns a client that follows no redirects, uses no proxy and keeps no
// connections. authorities are PEM; nil stands for the system's. ok is false if they contain
// no certificate.
func newHTTPClient(authorities []byte, timeout time.Duration) (c *http.Client, ok bool) {
	var pool *x509.CertPool
	if authorities != nil {
		pool = x509.NewCertPool()
		if !pool.AppendCertsFromPEM(authorities) {
			return nil, false
		}
	}
	transport := &http.Transport{
		TLSClientConfig:        &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12},
		DialContext:            (&net.Dialer{Timeout: timeout / 2}).DialContext,
		TLSHandshakeTimeout:    timeout / 2,
		ResponseHeaderTimeout:  timeout,
		MaxResponseHeaderBytes: 64 << 10,
		DisableKeepAlives:      true,
		DisableCompression:     true, // prevents a small answer that unpacks to a huge one
		Proxy:                  nil,  // ignores proxy variables of the environment
	}
	stay := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &http.Client{Transport: transport, CheckRedirect: stay, Timeout: timeout}, true
}
