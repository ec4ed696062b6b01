// SPDX-License-Identifier: Apache-2.0

package fabric

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/internal/trusted"
)

// credentialsMax is a bound on the size of a credentials file, in bytes.
const credentialsMax = 4096

// readCredentials reads "user:password" from a file that only root can read. Its errors
// never contain the file's content.
func readCredentials(path string) (user, password string, err error) {
	text, err := readSecret(path)
	if err != nil {
		return "", "", fmt.Errorf("UFM's credentials: %w", err)
	}
	user, password, ok := strings.Cut(strings.TrimSuffix(strings.TrimSuffix(text, "\n"), "\r"), ":")
	if !ok || user == "" || password == "" || len(text) == credentialsMax ||
		strings.ContainsAny(user+password, "\r\n\x00") {
		return "", "", fmt.Errorf("UFM's credentials: %s must hold one line, user:password", path)
	}
	return user, password, nil
}

// readSecret reads at most credentialsMax bytes. It checks the mode of the open file that it
// reads from.
func readSecret(path string) (string, error) {
	if err := trusted.Parents(path); err != nil {
		return "", err
	}
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY, 0) // a FIFO must not block
	if err != nil {
		return "", fmt.Errorf("cannot read %s: %w", path, errors.Unwrap(err))
	}
	defer f.Close()
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return "", fmt.Errorf("cannot read %s: %w", path, err)
	}
	if err := trusted.Check(path, &st, unix.S_IFREG); err != nil {
		return "", err
	}
	if st.Mode&0o077 != 0 {
		return "", fmt.Errorf("%s: others can read it (mode %04o); run: chmod 600 %s, and change the password", path,
			st.Mode&0o7777, path)
	}
	text, err := io.ReadAll(io.LimitReader(f, credentialsMax))
	if err != nil {
		return "", fmt.Errorf("cannot read %s: %w", path, errors.Unwrap(err))
	}
	return string(text), nil
}

// readAuthorities reads the PEM file of certificate authorities; nil stands for the system's
// authorities.
func readAuthorities(path string) ([]byte, error) {
	if path == "" {
		return nil, nil
	}
	pem, _, err := trusted.ReadFile(path, "UFM's CA")
	return pem, err
}

// redactURL returns the URL without the part before the host, which may contain a password.
func redactURL(s string) string {
	if i := strings.LastIndexByte(s, '@'); i >= 0 {
		return "...@" + s[i+1:]
	}
	return s
}
