// SPDX-License-Identifier: Apache-2.0

package subids

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/user"
	"strconv"

	"github.com/gojail/gojail/internal/command"
	"github.com/gojail/gojail/internal/deadline"
)

// Host is this node.
var Host = Source{Etc: "/etc", List: listAccounts, LookUp: lookUpAccount}

// getent is a program of the C library's package. It keeps the modules of a name service out of this process, and it
// can be killed.
const getent = "/usr/bin/getent"

// listAccounts calls line with each line that getent(1) prints of a database.
func listAccounts(ctx context.Context, database string, line func(string)) error {
	lines := &lineWriter{pass: line}
	if _, err := command.Run(ctx, command.Command{Path: getent, Args: []string{database}, Stdout: lines}); err != nil {
		return fmt.Errorf(
			"cannot list the accounts of the name service: %w; try again, or ask your administrator to correct it", err)
	}
	return nil
}

// lineWriter calls pass with each line that is written to it.
type lineWriter struct {
	pass func(string)
	rest []byte // beginning of a line whose end is still to come
}

// lineMost is the limit of a line. That of a group has the names of all members.
const lineMost = 16 << 20

func (w *lineWriter) Write(p []byte) (int, error) {
	w.rest = append(w.rest, p...)
	for {
		line, rest, whole := bytes.Cut(w.rest, []byte("\n"))
		if !whole {
			break
		}
		w.pass(string(line))
		w.rest = rest
	}
	if len(w.rest) > lineMost {
		return 0, errors.New("a line is too long")
	}
	return len(p), nil
}

// lookUpAccount asks the name service in this process. A call that hangs goes on until the process ends.
func lookUpAccount(ctx context.Context, database string, id uint32) (name string, err error) {
	type answer struct {
		name string
		err  error
	}
	a, inTime := deadline.Call(ctx, func() (a answer) {
		a.name, a.err = lookUp(database, strconv.FormatUint(uint64(id), 10))
		return a
	})
	if !inTime {
		return "", errors.New("it does not answer in time")
	}
	return a.name, a.err
}

func lookUp(database, id string) (string, error) {
	if database == "group" {
		g, err := user.LookupGroupId(id)
		if unknown := user.UnknownGroupIdError(""); errors.As(err, &unknown) {
			return "", nil
		} else if err != nil {
			return "", err
		}
		return "group " + g.Name, nil
	}
	u, err := user.LookupId(id)
	if unknown := user.UnknownUserIdError(0); errors.As(err, &unknown) {
		return "", nil
	} else if err != nil {
		return "", err
	}
	return u.Username, nil
}
