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

// entryMax is more than any entry has.
const entryMax = 512

func (e Entry) name() string { return fmt.Sprintf("%04x-%s.json", e.PKey, e.GUID) }

func (q *Queue) file(pkey uint16, guid GUID) string {
	return filepath.Join(q.dir, Entry{PKey: pkey, GUID: guid}.name())
}

func (e Entry) marshal() []byte {
	text, _ := json.Marshal(entryFile{e.Op, fmt.Sprintf("0x%04X", e.PKey), e.GUID.String(), e.Seq, e.Time.Unix()})
	return append(text, '\n')
}

// parseEntry accepts exactly what marshal writes.
func parseEntry(text []byte) (Entry, error) {
	var f entryFile
	var e Entry
	if err := json.Unmarshal(text, &f); err != nil {
		return e, errors.New("it is no entry")
	}
	guid, err := parseGUID(f.GUID)
	_, err2 := fmt.Sscanf(f.PKey, "0x%04X", &e.PKey)
	e = Entry{f.Op, e.PKey, guid, f.Seq, time.Unix(f.Time, 0)}
	if err != nil || err2 != nil || f.Op != Add && f.Op != Remove || checkCall(e.PKey, nil) != nil || !bytes.Equal(e.marshal(), text) {
		return e, errors.New("it is no entry")
	}
	return e, nil
}

// readEntry reads a file whose name says the same as its text.
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
	if err != nil || e.name() != filepath.Base(path) {
		return Entry{}, fmt.Errorf("%s is damaged", path)
	}
	return e, nil
}

// read lists the queue by Seq, and the names of the files that are no entries. It is
// called with the lock, so a file that was being written was left by a crash.
func (q *Queue) read() (entries []Entry, damaged []string, err error) {
	files, err := os.ReadDir(q.dir)
	if err != nil {
		return nil, nil, fmt.Errorf("cannot read %s: %w", q.dir, errors.Unwrap(err))
	}
	for _, f := range files {
		if strings.HasSuffix(f.Name(), wholefile.Suffix) {
			os.Remove(filepath.Join(q.dir, f.Name())) // if it stays, it is still no entry
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
	slices.SortFunc(entries, func(a, b Entry) int { return cmp.Or(cmp.Compare(a.Seq, b.Seq), strings.Compare(a.name(), b.name())) })
	return entries, damaged, nil
}

// write puts an entry in place at once and on disk.
func (q *Queue) write(e Entry) error {
	return wholefile.Save(filepath.Join(q.dir, e.name()), e.marshal(), 0o600)
}
