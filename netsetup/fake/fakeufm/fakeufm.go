// SPDX-License-Identifier: Apache-2.0

// Package fakeufm is a stand-in for NVIDIA's UFM in tests: the three REST calls that
// gojail makes, over TLS with a certificate of its own, and the ways in which a UFM
// can fail. It is not checked against a real UFM.
package fakeufm

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// UFM is a running stand-in.
type UFM struct {
	URL string

	server         *httptest.Server
	user, password string
	mu             sync.Mutex
	partitions     map[uint16][]string
	calls          []string
	fault          func(http.ResponseWriter, *http.Request) bool
	ended          chan struct{}
}

// Start starts a UFM on 127.0.0.1; Close ends it.
func Start(user, password string) *UFM {
	u := &UFM{user: user, password: password, partitions: map[uint16][]string{0x7fff: {}}, ended: make(chan struct{})}
	u.server = httptest.NewUnstartedServer(u)
	u.server.StartTLS()
	u.URL = u.server.URL
	return u
}

// Close ends the stand-in, and every call that hangs.
func (u *UFM) Close() {
	close(u.ended)
	u.server.Close()
}

// WriteFiles writes the credentials and the CA certificate into dir, as a site would.
func (u *UFM) WriteFiles(dir string) (credentials, ca string, err error) {
	credentials, ca = filepath.Join(dir, "ufm.credentials"), filepath.Join(dir, "ufm.pem")
	if err := os.WriteFile(credentials, []byte(u.user+":"+u.password+"\n"), 0o600); err != nil {
		return "", "", err
	}
	block := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: u.server.Certificate().Raw})
	return credentials, ca, os.WriteFile(ca, block, 0o644)
}

// Members returns the GUIDs in a partition, sorted.
func (u *UFM) Members(pkey uint16) []string {
	u.mu.Lock()
	defer u.mu.Unlock()
	return slices.Sorted(slices.Values(u.partitions[pkey]))
}

// Calls returns the requests so far: method, path with query, and body.
func (u *UFM) Calls() []string {
	u.mu.Lock()
	defer u.mu.Unlock()
	return slices.Clone(u.calls)
}

// ClearFault ends the fault that was set before.
func (u *UFM) ClearFault() { u.setFault(nil) }

// Answer answers every call with this status and text.
func (u *UFM) Answer(status int, text string) {
	u.setFault(func(w http.ResponseWriter, _ *http.Request) bool {
		w.WriteHeader(status)
		io.WriteString(w, text)
		return true
	})
}

// FailFirst answers n calls with status, and works afterwards.
func (u *UFM) FailFirst(n, status int) {
	u.setFault(func(w http.ResponseWriter, _ *http.Request) bool {
		if n--; n < 0 {
			return false
		}
		http.Error(w, "Internal Server Error", status)
		return true
	})
}

// Hang answers no call until the caller or the stand-in ends.
func (u *UFM) Hang() {
	u.setFault(func(_ http.ResponseWriter, r *http.Request) bool {
		select {
		case <-r.Context().Done():
		case <-u.ended:
		}
		return true
	})
}

// Hold keeps every call waiting until release is called, and then serves it.
func (u *UFM) Hold() (release func()) {
	held := make(chan struct{})
	u.setFault(func(_ http.ResponseWriter, r *http.Request) bool {
		select {
		case <-held:
		case <-u.ended:
		}
		return false
	})
	return func() { close(held) }
}

// CutConnection ends the connection in the middle of an answer. If taken, the call has been
// served by then.
func (u *UFM) CutConnection(taken bool) {
	u.setFault(func(w http.ResponseWriter, r *http.Request) bool {
		if taken {
			u.serve(httptest.NewRecorder(), r)
		}
		w.Header().Set("Content-Length", "1000")
		io.WriteString(w, `{"half":`)
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	})
}

// AnswerEndlessly sends an answer without end.
func (u *UFM) AnswerEndlessly() {
	u.setFault(func(w http.ResponseWriter, _ *http.Request) bool {
		chunk := []byte(strings.Repeat(" ", 1<<20))
		for {
			if _, err := w.Write(chunk); err != nil {
				return true
			}
		}
	})
}

// Redirect redirects every call to another address.
func (u *UFM) Redirect(to string) {
	u.setFault(func(w http.ResponseWriter, r *http.Request) bool {
		http.Redirect(w, r, to+r.URL.Path, http.StatusTemporaryRedirect)
		return true
	})
}

func (u *UFM) setFault(fault func(http.ResponseWriter, *http.Request) bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.fault = fault
}

// ServeHTTP serves one call.
func (u *UFM) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(io.LimitReader(r.Body, 1<<20))
	r.Body = io.NopCloser(strings.NewReader(string(body)))
	u.mu.Lock()
	u.calls = append(u.calls, strings.TrimSpace(fmt.Sprintf("%s %s %s", r.Method, r.URL.RequestURI(), body)))
	fault := u.fault
	u.mu.Unlock()
	if user, password, ok := r.BasicAuth(); !ok || user != u.user || password != u.password {
		http.Error(w, "Unauthorized", http.StatusUnauthorized)
		return
	}
	if fault != nil && fault(w, r) {
		return
	}
	u.serve(w, r)
}

func (u *UFM) serve(w http.ResponseWriter, r *http.Request) {
	switch r.Method + " " + r.URL.Path {
	case "POST /ufmRest/resources/pkeys":
		u.change(w, r, true)
	case "POST /ufmRest/actions/remove_guids_from_pkey":
		u.change(w, r, false)
	case "GET /ufmRest/resources/pkeys/":
		u.listPartitions(w)
	default:
		http.NotFound(w, r)
	}
}

var (
	keyRule  = regexp.MustCompile(`^0x[0-9A-Fa-f]{1,4}$`)
	guidRule = regexp.MustCompile(`^[0-9a-f]{16}$`)
)

func (u *UFM) change(w http.ResponseWriter, r *http.Request, add bool) {
	var call struct {
		PKey       string   `json:"pkey"`
		GUIDs      []string `json:"guids"`
		Membership string   `json:"membership"`
	}
	err := json.NewDecoder(r.Body).Decode(&call)
	bad := func(guid string) bool { return !guidRule.MatchString(guid) }
	if err != nil || !keyRule.MatchString(call.PKey) || len(call.GUIDs) == 0 || slices.ContainsFunc(call.GUIDs, bad) ||
		add && call.Membership != "full" || r.Header.Get("Content-Type") != "application/json" {
		http.Error(w, "Bad Request", http.StatusBadRequest)
		return
	}
	n, _ := strconv.ParseUint(call.PKey[2:], 16, 16)
	pkey := uint16(n)
	u.mu.Lock()
	defer u.mu.Unlock()
	members, exists := u.partitions[pkey]
	if !add && !exists {
		http.Error(w, "PKey not found", http.StatusNotFound)
		return
	}
	members = slices.DeleteFunc(members, func(guid string) bool { return slices.Contains(call.GUIDs, guid) })
	if add {
		members = append(members, call.GUIDs...)
	}
	u.partitions[pkey] = members
	io.WriteString(w, "{}")
}

func (u *UFM) listPartitions(w http.ResponseWriter) {
	type guid struct {
		GUID       string `json:"guid"`
		Membership string `json:"membership"`
	}
	type partition struct {
		GUIDs []guid `json:"guids"`
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	answer := map[string]partition{}
	for pkey, members := range u.partitions {
		p := partition{GUIDs: []guid{}}
		for _, m := range members {
			p.GUIDs = append(p.GUIDs, guid{m, "full"})
		}
		answer[fmt.Sprintf("0x%x", pkey)] = p
	}
	json.NewEncoder(w).Encode(answer)
}
