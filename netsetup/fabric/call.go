// SPDX-License-Identifier: Apache-2.0

package fabric

import (
	"context"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode"
)

const (
	// answerMax bounds an answer: 100 000 GUIDs in partitions are about 12 MB.
	answerMax = 32 << 20
	// shownMax is how much of a refusal is shown.
	shownMax = 200
)

// Answers of HTTP that mean something here.
const (
	unauthorized    = 401
	forbidden       = 403
	notFound        = 404
	tooManyRequests = 429
)

// addCall is the body of POST /ufmRest/resources/pkeys. Full members may talk to all;
// index0 and ip_over_ib let IPoIB run over the partition.
type addCall struct {
	PKey       string   `json:"pkey"`
	Index0     bool     `json:"index0"`
	IPOverIB   bool     `json:"ip_over_ib"`
	Membership string   `json:"membership"`
	GUIDs      []string `json:"guids"`
}

// removeCall is the body of POST /ufmRest/actions/remove_guids_from_pkey.
type removeCall struct {
	PKey  string   `json:"pkey"`
	GUIDs []string `json:"guids"`
}

// change makes GUIDs full members of a partition ("add"), or takes them out of it; those
// that are or are not in it already are no error.
func (c *Client) change(ctx context.Context, op string, pkey uint16, guids []GUID) error {
	if Default(pkey) || len(guids) == 0 {
		return nil
	}
	if err := checkCall(pkey, guids); err != nil {
		return err
	}
	names := make([]string, len(guids))
	for i, g := range guids {
		names[i] = g.String()
	}
	key := fmt.Sprintf("0x%04X", pkey)
	what := fmt.Sprintf("%s %s in partition %s", op, strings.Join(names, ", "), key)
	if len(names) > 4 {
		what = fmt.Sprintf("%s %d GUIDs in partition %s", op, len(names), key)
	}
	if op == "add" {
		_, err := c.call(ctx, what, "POST", "/ufmRest/resources/pkeys", addCall{key, true, true, "full", names})
		return err
	}
	_, err := c.call(ctx, what, "POST", "/ufmRest/actions/remove_guids_from_pkey", removeCall{key, names})
	var refused *refusal
	if errors.As(err, &refused) && refused.status == notFound {
		return nil // no such partition: nobody is in it
	}
	return err
}

// Members lists the GUIDs in each partition.
func (c *Client) Members(ctx context.Context) (map[uint16][]GUID, error) {
	const what = "list partitions"
	text, err := c.call(ctx, what, "GET", "/ufmRest/resources/pkeys/?guids_data=true", nil)
	if err != nil {
		return nil, err
	}
	members, err := parseMembers(text)
	if err != nil {
		return nil, c.failed(what, err)
	}
	return members, nil
}

// parseMembers reads {"0x7fff": {"guids": [{"guid": "0011223344556677"}]}}.
func parseMembers(text []byte) (map[uint16][]GUID, error) {
	var answer map[string]*struct {
		GUIDs []struct {
			GUID string `json:"guid"`
		} `json:"guids"`
	}
	if err := json.Unmarshal(text, &answer); err != nil || answer == nil {
		return nil, fmt.Errorf("%w: the answer is no list of partitions", ErrAway)
	}
	members := make(map[uint16][]GUID, len(answer))
	for key, partition := range answer {
		hex, ok := strings.CutPrefix(key, "0x")
		pkey, err := strconv.ParseUint(hex, 16, 15)
		if !ok || err != nil || partition == nil {
			return nil, fmt.Errorf("%w: the answer has the strange partition %.20q", ErrAway, key)
		}
		guids := make([]GUID, 0, len(partition.GUIDs))
		for _, g := range partition.GUIDs {
			guid, err := parseGUID(g.GUID)
			if err != nil {
				return nil, fmt.Errorf("%w: partition %s in the answer: %v", ErrAway, key, err)
			}
			guids = append(guids, guid)
		}
		members[uint16(pkey)] = append(members[uint16(pkey)], guids...)
	}
	return members, nil
}

// refusal is an answer of UFM's that another try would not change.
type refusal struct {
	status int
	text   string
}

func (r *refusal) Error() string {
	switch r.status {
	case unauthorized, forbidden:
		return fmt.Sprintf("it does not take the user and password (HTTP %d); correct the credentials file", r.status)
	}
	return fmt.Sprintf("it refuses (HTTP %d): %s", r.status, r.text)
}

// call makes a request, again while UFM is away, and gives the answer.
func (c *Client) call(ctx context.Context, what, method, path string, body any) ([]byte, error) {
	var payload []byte
	if body != nil {
		var err error
		if payload, err = json.Marshal(body); err != nil {
			return nil, err
		}
	}
	var answer []byte
	err := c.retry(ctx, func() (err error) {
		answer, err = c.once(ctx, method, path, payload)
		return err
	})
	if err != nil {
		return nil, c.failed(what, err)
	}
	return answer, nil
}

func (c *Client) failed(what string, err error) error {
	return fmt.Errorf("UFM %s: cannot %s: %w", c.base.Host, what, err)
}

func (c *Client) once(ctx context.Context, method, path string, payload []byte) ([]byte, error) {
	status, text, err := c.send(ctx, method, strings.TrimSuffix(c.base.String(), "/")+path, payload, c.answerMax+1)
	switch {
	case err != nil:
		return nil, unreachable(ctx, err)
	case int64(len(text)) > c.answerMax:
		return nil, &refusal{status, fmt.Sprintf("the answer is larger than %d bytes", c.answerMax)}
	case status >= 500, status == tooManyRequests:
		return nil, fmt.Errorf("%w: HTTP %d: %s", ErrAway, status, c.shown(text))
	case status < 200 || status > 299:
		return nil, &refusal{status, c.shown(text)}
	}
	return text, nil
}

// unreachable is why there was no answer. A certificate that is wrong stays wrong.
func unreachable(ctx context.Context, err error) error {
	var certificate *tls.CertificateVerificationError
	switch {
	case errors.As(err, &certificate):
		return fmt.Errorf("its certificate is not right: %v; set ca in [ufm], or renew the certificate", certificate.Err)
	case errors.Is(ctx.Err(), context.Canceled):
		return fmt.Errorf("%w: %w", ErrAway, context.Canceled)
	case errors.Is(err, context.DeadlineExceeded) || ctx.Err() != nil:
		return fmt.Errorf("%w: no answer in time", ErrAway)
	}
	var inner interface{ Unwrap() error }
	if errors.As(err, &inner) && inner.Unwrap() != nil {
		err = inner.Unwrap() // without "Post https://...", which the caller says better
	}
	return fmt.Errorf("%w: %v", ErrAway, err)
}

// shown is the beginning of an answer, on one line, without the secrets it may repeat.
func (c *Client) shown(text []byte) string {
	s := string(text)
	for _, secret := range []string{base64.StdEncoding.EncodeToString([]byte(c.user + ":" + c.password)), c.password} {
		s = strings.ReplaceAll(s, secret, "...")
	}
	return printable(s)
}

// printable makes one line of s, at most shownMax bytes of it.
func printable(s string) string {
	if len(s) > shownMax {
		s = s[:shownMax] + "..."
	}
	line := strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, strings.ToValidUTF8(s, " "))
	return strings.Join(strings.Fields(line), " ")
}
