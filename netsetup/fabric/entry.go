// SPDX-License-Identifier: Apache-2.0

package fabric

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/internal/wholefile"
)

// entryFile is an entry on disk: PKEY-GUID.json, such as 0011-0011223344556677.json.
type entryFile struct {
	Op   Op     `json:"op"`
	PKey string `json:"pkey"`
	GUID string `json:"guid"`
	Seq  uint64 `json:"seq"`
	Time int64  `json:"time"` // seconds since 1970
}

// entryMax is a bound on the size of an entry, in bytes.
const entryMax = 512

func (e Entry) fileName() string { return fmt.Sprintf("%04x-%s.json", e.PKey, e.GUID) }

func (q *Queue) entryPath(pkey uint16, guid GUID) string {
	return filepath.Join(q.dir, Entry{PKey: pkey, GUID: guid}.fileName())
}

func (e Entry) marshal() []byte {
	text, _ := json.Marshal(entryFile{e.Op, fmt.Sprintf("0x%04X", e.PKey), e.GUID.String(), e.Seq, e.Time.Unix()})
	return append(text, '\n')
}

// parseEntry reads an entry and accepts exactly what marshal writes.
func parseEntry(text []byte) (Entry, error) {
	var f entryFile
	var e Entry
	if err := json.Unmarshal(text, &f); err != nil {
		return e, errors.New("not an entry")
	}
	guid, err := parseGUID(f.GUID)
	_, pkeyErr := fmt.Sscanf(f.PKey, "0x%04X", &e.PKey)
	e = Entry{f.Op, e.PKey, guid, f.Seq, time.Unix(f.Time, 0)}
	if err != nil || pkeyErr != nil || f.Op != Add && f.Op != Remove || checkCall(e.PKey, nil) != nil ||
		!bytes.Equal(e.marshal(), text) {
		return e, errors.New("not an entry")
	}
	return e, nil
}

// readEntry reads an entry, whose file name must match its content.
func readEntry(path string) (Entry, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return Entry{}, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, entryMax))
	if err != nil {
		return Entry{}, err
	}
	e, err := parseEntry(text)
	if err != nil || e.fileName() != filepath.Base(path) {
		return Entry{}, fmt.Errorf("%s is damaged", path)
	}
	return e, nil
}

// readEntries returns the entries by Seq, and the names of files that are not entries. The
// caller holds the lock, so a partly written file is left by a crash.
func (q *Queue) readEntries() (entries []Entry, damaged []string, err error) {
	files, err := os.ReadDir(q.dir)
	if err != nil {
		return nil, nil, fmt.Errorf("cannot read %s: %w", q.dir, errors.Unwrap(err))
	}
	for _, f := range files {
		if strings.HasSuffix(f.Name(), wholefile.Suffix) {
			os.Remove(filepath.Join(q.dir, f.Name())) // if the removal fails, the file is still not an entry
			continue
		}
		if f.Name() == "lock" {
			continue
		}
		e, err := readEntry(filepath.Join(q.dir, f.Name()))
		switch {
		case err == nil:
			entries = append(entries, e)
		case errors.Is(err, fs.ErrNotExist):
		default:
			damaged = append(damaged, f.Name())
		}
	}
	slices.SortFunc(entries, func(a, b Entry) int {
		return cmp.Or(cmp.Compare(a.Seq, b.Seq), strings.Compare(a.fileName(), b.fileName()))
	})
	return entries, damaged, nil
}

// writeEntry writes an entry atomically and syncs it.
func (q *Queue) writeEntry(e Entry) error {
	return wholefile.Save(filepath.Join(q.dir, e.fileName()), e.marshal(), 0o600)
}
