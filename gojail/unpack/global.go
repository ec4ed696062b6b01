// SPDX-License-Identifier: Apache-2.0

package unpack

import (
	"archive/tar"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// readGlobal reads a global header. Its records describe all files that follow, until another one changes them
// (pax(1)); an empty value takes a record back. Names and sizes cannot be properties of all files, and are ignored.
func (u *unpacker) readGlobal(records map[string]string) error {
	if records[paxVolumeFile] != "" {
		return errors.New(refusedTypes[typeContinued])
	}
	if records == nil { // archive/tar could not parse a number
		return errors.New("its records are damaged")
	}
	for key, value := range records {
		switch {
		case strings.HasPrefix(key, paxXattr), strings.HasPrefix(key, paxLibarchiveXattr):
			u.result.leaveOut(leftAttributes, 1)
		case key != "uid" && key != "gid" && key != "mtime" && key != "atime":
		case value == "":
			delete(u.global, key)
		default:
			u.global[key] = value
		}
	}
	return nil
}

// applyGlobal gives an entry the records of the global headers, except those that its own extended header has.
// archive/tar returns a global header as an entry, and applies it to none.
func (u *unpacker) applyGlobal(h *tar.Header) error {
	for key, value := range u.global {
		if _, ok := h.PAXRecords[key]; ok {
			continue
		}
		var err error
		switch key {
		case "uid":
			h.Uid, err = strconv.Atoi(value)
		case "gid":
			h.Gid, err = strconv.Atoi(value)
		case "mtime":
			h.ModTime, err = parseTime(value)
		case "atime":
			h.AccessTime, err = parseTime(value)
		}
		if err != nil {
			return fmt.Errorf("the global header has an invalid %s %s", key, quoteName(value))
		}
	}
	return nil
}

// parseTime parses a time of an extended header: seconds with a fraction.
func parseTime(text string) (time.Time, error) {
	whole, fraction, _ := strings.Cut(text, ".")
	seconds, err := strconv.ParseInt(whole, 10, 64)
	if err != nil {
		return time.Time{}, err
	}
	digits := (fraction + "000000000")[:9]
	nanoseconds, err := strconv.ParseUint(digits, 10, 32)
	if err != nil {
		return time.Time{}, err
	}
	// The fraction has the sign of the seconds. The sign comes from the text, because -0 parses as 0.
	if strings.HasPrefix(whole, "-") {
		return time.Unix(seconds, -int64(nanoseconds)), nil
	}
	return time.Unix(seconds, int64(nanoseconds)), nil
}
