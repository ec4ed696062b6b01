// SPDX-License-Identifier: Apache-2.0

package config

import (
	"net/url"
	"strings"
	"time"

	"github.com/BurntSushi/toml"
)

// parseControl reads [control].
func (r *reader) parseControl() (err error) {
	f := r.file.Control
	if f == nil {
		return nil
	}
	c := &r.config.Control
	if f.Pool == nil {
		return r.Refuse(key("control"), "pool is missing: the addresses of jobs in the node's own network")
	}
	if c.Pool, err = r.takePool(*f.Pool, "[control]"); err != nil {
		return r.Refuse(key("control", "pool"), "%v", err)
	}
	if f.Interface != nil {
		if !matches(wordRule, *f.Interface, interfaceMost) {
			return r.Refuse(key("control", "interface"),
				`%.100q: write the name of an interface, such as "eth0", or leave it out`, *f.Interface)
		}
		c.Interface = *f.Interface
	}
	c.MTU, err = parseNumber(r.Source, f.MTU, 0, mtuMin, mtuMax, key("control", "mtu"))
	return err
}

// parseProbe reads [probe]. The defaults are shorter than those of RFC 5227, which sends
// three probes at least one second apart: too slow for a job step.
func (r *reader) parseProbe() (err error) {
	f := &r.file.Probe
	p := &r.config.Probe
	p.Conflict = f.Conflict == nil || *f.Conflict
	p.Gateway = f.Gateway == nil || *f.Gateway
	if p.Timeout, err = r.parseDuration(f.Timeout, 200*time.Millisecond, 10*time.Millisecond, 10*time.Second,
		key("probe", "timeout")); err != nil {
		return err
	}
	if p.Tries, err = parseNumber(r.Source, f.Tries, 3, 1, 10, key("probe", "tries")); err != nil {
		return err
	}
	p.Carrier, err = r.parseDuration(f.Carrier, 8*time.Second, 0, 5*time.Minute, key("probe", "carrier"))
	return err
}

// parseDuration reads a time from low to high; the default is standard.
func (r *reader) parseDuration(text *string, standard, low, high time.Duration, k toml.Key) (time.Duration, error) {
	if text == nil {
		return standard, nil
	}
	d, err := time.ParseDuration(*text)
	if err != nil || d < low || d > high {
		return 0, r.Refuse(k, `%.100q: write a time from "%s" to "%s"`, *text, low, high)
	}
	return d, nil
}

// parseUFM reads [ufm].
func (r *reader) parseUFM() (err error) {
	f := r.file.UFM
	if f == nil {
		return nil
	}
	u := &UFM{Required: f.Required == nil || *f.Required}
	if f.URL == nil {
		return r.Refuse(key("ufm"), `url is missing, such as "https://ufm.example.org"`)
	}
	if u.URL, err = r.parseURL(*f.URL); err != nil {
		return err
	}
	if f.Credentials == nil {
		return r.Refuse(key("ufm"),
			`credentials is missing: the path of a file that only root can read, with "user:password"`)
	}
	if u.Credentials, err = parseAbsolutePath(r.Source, *f.Credentials, "ufm", "credentials"); err != nil {
		return err
	}
	if f.CA != nil {
		if u.CA, err = parseAbsolutePath(r.Source, *f.CA, "ufm", "ca"); err != nil {
			return err
		}
	}
	r.config.UFM = u
	return nil
}

// parseURL reads a URL of scheme, host and optional port. It accepts https only, because the
// password is sent there.
func (r *reader) parseURL(text string) (string, error) {
	k := key("ufm", "url")
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Hostname() == "" || u.User != nil || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" ||
		u.Fragment != "":
		return "", r.Refuse(k, `%.200q: write the scheme and the host, such as "https://ufm.example.org"; user and `+
			`password go into the file credentials`, hidePassword(text))
	case u.Scheme != "https":
		return "", r.Refuse(k, "%.200q: must be https://, because the password is sent there", text)
	}
	return "https://" + u.Host, nil
}

// hidePassword returns text without the part before its last @.
func hidePassword(text string) string {
	if i := strings.LastIndex(text, "@"); i >= 0 {
		return "..." + text[i:]
	}
	return text
}
