// SPDX-License-Identifier: Apache-2.0

package fabric

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"
)

// Config is the [ufm] table of network.toml.
type Config struct {
	URL         string // https://HOST[:PORT]
	Credentials string // path of a file that only root can read: "user:password"
	CA          string // path of a PEM file; "": the system's certificate authorities
}

const (
	// callTimeout is the timeout of one request with its answer.
	callTimeout = 10 * time.Second
	// tries and firstPause define 4 requests, with pauses of 1, 1.6 and 2.56 seconds.
	tries      = 4
	firstPause = time.Second
)

// ErrUnreachable means that UFM cannot be reached or does not work; a later retry may
// succeed.
var ErrUnreachable = errors.New("UFM is unreachable")

// Client is a client of UFM. It keeps no connection between calls.
type Client struct {
	base           *url.URL
	user, password string
	http           *http.Client
	pause          time.Duration // pause before the second try
	answerMax      int64
}

// Open reads the credentials and certificates and returns a client. It makes no call.
func Open(c Config) (*Client, error) {
	base, err := url.Parse(c.URL)
	if err != nil || base.Scheme != "https" || base.Host == "" || base.User != nil || base.RawQuery != "" ||
		base.Fragment != "" {
		return nil, fmt.Errorf("%q cannot be UFM's address: write https://HOST or https://HOST:PORT; user and "+
			"password go to the credentials file", redactURL(c.URL))
	}
	user, password, err := readCredentials(c.Credentials)
	if err != nil {
		return nil, err
	}
	authorities, err := readAuthorities(c.CA)
	if err != nil {
		return nil, err
	}
	client, ok := newHTTPClient(authorities, callTimeout)
	if !ok {
		return nil, fmt.Errorf("%s: UFM's CA holds no certificate; it must be PEM", c.CA)
	}
	return &Client{base: base, user: user, password: password, pause: firstPause, answerMax: answerMax, http: client},
		nil
}

// retry repeats a call while UFM is unreachable and the context's deadline permits another
// try.
func (c *Client) retry(ctx context.Context, call func() error) error {
	pause := c.pause
	for try := 1; ; try++ {
		err := call()
		if !errors.Is(err, ErrUnreachable) || try == tries || ctx.Err() != nil {
			return err
		}
		if until, ok := ctx.Deadline(); ok && time.Until(until) < pause {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(pause):
		}
		pause = pause * 8 / 5
	}
}
