// SPDX-License-Identifier: Apache-2.0

// Package https is how package fabric reaches UFM: https only, certificates always checked,
// redirects and proxies not followed, no connection kept between calls. Programs that call
// UFM set fabric.HTTPS to New. The others, which only look at what a node has, do not
// link net/http: it takes longer to load than most of their work.
package https

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"time"
)

// New gives a function that makes one request. authorities are PEM; nil: the system's.
// It is false if there is no certificate among them. An answer is cut after most bytes.
func New(authorities []byte, timeout time.Duration) (request func(ctx context.Context, method, url, user, password string, payload []byte, most int64) (status int, answer []byte, err error), ok bool) {
	var pool *x509.CertPool
	if authorities != nil {
		pool = x509.NewCertPool()
		if !pool.AppendCertsFromPEM(authorities) {
			return nil, false
		}
	}
	c := client(pool, timeout)
	return func(ctx context.Context, method, url, user, password string, payload []byte, most int64) (int, []byte, error) {
		req, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(payload))
		if err != nil {
			return 0, nil, err
		}
		req.SetBasicAuth(user, password)
		req.Header.Set("Accept", "application/json")
		if payload != nil {
			req.Header.Set("Content-Type", "application/json")
		}
		resp, err := c.Do(req)
		if err != nil {
			return 0, nil, explained(err)
		}
		defer resp.Body.Close()
		answer, err := io.ReadAll(io.LimitReader(resp.Body, most))
		return resp.StatusCode, answer, explained(err)
	}, true
}

func client(authorities *x509.CertPool, timeout time.Duration) *http.Client {
	transport := &http.Transport{
		TLSClientConfig:        &tls.Config{RootCAs: authorities, MinVersion: tls.VersionTLS12},
		DialContext:            (&net.Dialer{Timeout: timeout / 2}).DialContext,
		TLSHandshakeTimeout:    timeout / 2,
		ResponseHeaderTimeout:  timeout,
		MaxResponseHeaderBytes: 64 << 10,
		DisableKeepAlives:      true,
		DisableCompression:     true, // a small answer cannot unpack to a huge one
		Proxy:                  nil,  // the environment has no say
	}
	stay := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &http.Client{Transport: transport, CheckRedirect: stay, Timeout: timeout}
}

// certificateError is for a certificate that is wrong, and stays so.
type certificateError struct{ error }

// WrongCertificate tells this error from others, for those that do not link this package.
func (certificateError) WrongCertificate() {}

func explained(err error) error {
	var certificate *tls.CertificateVerificationError
	if errors.As(err, &certificate) {
		return certificateError{certificate.Err}
	}
	return err
}
