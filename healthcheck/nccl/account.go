// SPDX-License-Identifier: Apache-2.0

package nccl

import (
	"fmt"
	"os/user"
	"strconv"
	"syscall"
)

// Account is the owner of the jobs. Their output is read with its rights, too, since files in
// the account's own directory are not to be read as root.
type Account struct {
	Name, home string
	uid, gid   uint32
	groups     []uint32
}

// FindAccount looks up an account.
func FindAccount(name string) (*Account, error) {
	u, err := user.Lookup(name)
	if err != nil {
		return nil, fmt.Errorf("nccl.user: this machine has no account %.50q", name)
	}
	a := &Account{Name: u.Username, home: u.HomeDir}
	ids, err := u.GroupIds()
	if err != nil {
		return nil, fmt.Errorf("nccl.user: cannot read the groups of %.50q: %w", name, err)
	}
	for i, text := range append([]string{u.Uid, u.Gid}, ids...) {
		id, err := strconv.ParseUint(text, 10, 32)
		switch {
		case err != nil:
			return nil, fmt.Errorf("nccl.user: the account %.50q has the id %.20q", name, text)
		case i == 0:
			a.uid = uint32(id)
		case i == 1:
			a.gid = uint32(id)
		default:
			a.groups = append(a.groups, uint32(id))
		}
	}
	return a, nil
}

func (a *Account) newCredential() *syscall.Credential {
	return &syscall.Credential{Uid: a.uid, Gid: a.gid, Groups: a.groups}
}

func (a *Account) buildEnvironment() []string {
	return []string{"HOME=" + a.home, "USER=" + a.Name, "LOGNAME=" + a.Name}
}
