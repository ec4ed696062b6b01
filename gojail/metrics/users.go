// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"os/user"
	"strconv"
	"time"

	"github.com/gojail/gojail/internal/deadline"
)

// usersPatience is the time limit for the names of all users together: a name service may hang.
const usersPatience = 2 * time.Second

// users finds names of users. A user whose name is not found in time has the uid as name.
type users struct {
	lookup func(uid string) (string, error)
	known  map[uint32]string
	until  time.Time
}

// newUsers returns users that ask the node's name service (nsswitch.conf(5)).
func newUsers() *users {
	return &users{known: map[uint32]string{}, until: time.Now().Add(usersPatience),
		lookup: func(uid string) (string, error) {
			u, err := user.LookupId(uid)
			if err != nil {
				return "", err
			}
			return u.Username, nil
		}}
}

func (u *users) name(uid uint32) string {
	if name, ok := u.known[uid]; ok {
		return name
	}
	number := strconv.FormatUint(uint64(uid), 10)
	name, inTime := deadline.CallFor(time.Until(u.until), func() string {
		name, err := u.lookup(number)
		if err != nil {
			return ""
		}
		return name
	})
	if !inTime || name == "" {
		name = number
	}
	u.known[uid] = name
	return name
}
