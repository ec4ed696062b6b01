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
	// answerMax is the maximum size of an answer in bytes: 100 000 GUIDs in partitions take about 12 MB.
	answerMax = 32 << 20
	// excerptMax is the maximum length of an excerpt of an answer in an error, in bytes.
	excerptMax = 200
)

// The HTTP status codes that are treated specially.
const (
	unauthorized    = 401
	forbidden       = 403
	notFound        = 404
	tooManyRequests = 429
)

// addCall is the body of POST /ufmRest/resources/pkeys. Full members may talk to all
// members; index0 and ip_over_ib let IPoIB run over the partition.
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

// changeMembers makes GUIDs full members of a partition ("add"), or removes them from it.
// GUIDs that are already members, or already removed, are no error.
func (c *Client) changeMembers(ctx context.Context, op string, pkey uint16, guids []GUID) error {
	if IsDefault(pkey) || len(guids) == 0 {
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
		_, err := c.callWithRetry(ctx, what, "POST", "/ufmRest/resources/pkeys",
			addCall{key, true, true, "full", names})
		return err
	}
	_, err := c.callWithRetry(ctx, what, "POST", "/ufmRest/actions/remove_guids_from_pkey", removeCall{key, names})
	var refused *refusal
	if errors.As(err, &refused) && refused.status == notFound {
		return nil // no such partition, so it has no members
	}
	return err
}

// ListMembers returns the GUIDs in each partition.
func (c *Client) ListMembers(ctx context.Context) (map[uint16][]GUID, error) {
	const what = "list partitions"
	text, err := c.callWithRetry(ctx, what, "GET", "/ufmRest/resources/pkeys/?guids_data=true", nil)
	if err != nil {
		return nil, err
	}
	members, err := parseMembers(text)
	if err != nil {
		return nil, c.wrapError(what, err)
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
		return nil, fmt.Errorf("%w: the answer is not a list of partitions", ErrUnreachable)
	}
	members := make(map[uint16][]GUID, len(answer))
	for key, partition := range answer {
		hex, ok := strings.CutPrefix(key, "0x")
		pkey, err := strconv.ParseUint(hex, 16, 15)
		if !ok || err != nil || partition == nil {
			return nil, fmt.Errorf("%w: the answer has the invalid partition %.20q", ErrUnreachable, key)
		}
		guids := make([]GUID, 0, len(partition.GUIDs))
		for _, g := range partition.GUIDs {
			guid, err := parseGUID(g.GUID)
			if err != nil {
				return nil, fmt.Errorf("%w: partition %s in the answer: %v", ErrUnreachable, key, err)
			}
			guids = append(guids, guid)
		}
		members[uint16(pkey)] = append(members[uint16(pkey)], guids...)
	}
	return members, nil
}

// refusal is an answer of UFM that a retry would not change.
type refusal struct {
	status int
	text   string
}

func (r *refusal) Error() string {
	switch r.status {
	case unauthorized, forbidden:
		return fmt.Sprintf("it rejects the user and password (HTTP %d); correct the credentials file", r.status)
	}
	return fmt.Sprintf("it rejects the call (HTTP %d): %s", r.status, r.text)
}

// callWithRetry sends a request, retries it while UFM is unreachable, and returns the
// answer.
func (c *Client) callWithRetry(ctx context.Context, what, method, path string, body any) ([]byte, error) {
	var payload []byte
	if body != nil {
		var err error
		if payload, err = json.Marshal(body); err != nil {
			return nil, err
		}
	}
	var answer []byte
	err := c.retry(ctx, func() (err error) {
		answer, err = c.callOnce(ctx, method, path, payload)
		return err
	})
	if err != nil {
		return nil, c.wrapError(what, err)
	}
	return answer, nil
}

func (c *Client) wrapError(what string, err error) error {
	return fmt.Errorf("UFM %s: cannot %s: %w", c.base.Host, what, err)
}

func (c *Client) callOnce(ctx context.Context, method, path string, payload []byte) ([]byte, error) {
	status, text, err := c.doRequest(ctx, method, strings.TrimSuffix(c.base.String(), "/")+path, payload, c.answerMax+1)
	switch {
	case err != nil:
		return nil, explainUnreachable(ctx, err)
	case int64(len(text)) > c.answerMax:
		return nil, &refusal{status, fmt.Sprintf("the answer is larger than %d bytes", c.answerMax)}
	case status >= 500, status == tooManyRequests:
		return nil, fmt.Errorf("%w: HTTP %d: %s", ErrUnreachable, status, c.redactAnswer(text))
	case status < 200 || status > 299:
		return nil, &refusal{status, c.redactAnswer(text)}
	}
	return text, nil
}

// explainUnreachable returns the reason for a missing answer. A certificate that is not
// valid is not worth a retry.
func explainUnreachable(ctx context.Context, err error) error {
	var certificate *tls.CertificateVerificationError
	switch {
	case errors.As(err, &certificate):
		return fmt.Errorf("its certificate is not valid: %v; set ca in [ufm], or renew the certificate",
			certificate.Err)
	case errors.Is(ctx.Err(), context.Canceled):
		return fmt.Errorf("%w: %w", ErrUnreachable, context.Canceled)
	case errors.Is(err, context.DeadlineExceeded) || ctx.Err() != nil:
		return fmt.Errorf("%w: no answer in time", ErrUnreachable)
	}
	var inner interface{ Unwrap() error }
	if errors.As(err, &inner) && inner.Unwrap() != nil {
		err = inner.Unwrap() // without "Post https://...", because the caller names the call
	}
	return fmt.Errorf("%w: %v", ErrUnreachable, err)
}

// redactAnswer returns the start of an answer on one line, without secrets that it may
// repeat.
func (c *Client) redactAnswer(text []byte) string {
	s := string(text)
	for _, secret := range []string{base64.StdEncoding.EncodeToString([]byte(c.user + ":" + c.password)), c.password} {
		s = strings.ReplaceAll(s, secret, "...")
	}
	return makePrintable(s)
}

// makePrintable returns s on one line, at most excerptMax bytes of it.
func makePrintable(s string) string {
	if len(s) > excerptMax {
		s = s[:excerptMax] + "..."
	}
	line := strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, strings.ToValidUTF8(s, " "))
	return strings.Join(strings.Fields(line), " ")
}
