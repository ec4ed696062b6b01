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

// send makes one request and returns at most so many bytes of the answer.
func (c *Client) send(ctx context.Context, method, url string, payload []byte, most int64) (status int, answer []byte, err error) {
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

// httpClient returns a client that follows no redirect and no proxy and keeps no connection.
// authorities are PEM; nil: the system's. ok is false if they hold no certificate.
func httpClient(authorities []byte, timeout time.Duration) (c *http.Client, ok bool) {
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
		DisableCompression:     true, // a small answer cannot unpack to a huge one
		Proxy:                  nil,  // the environment has no say
	}
	stay := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &http.Client{Transport: transport, CheckRedirect: stay, Timeout: timeout}, true
}
