// SPDX-License-Identifier: Apache-2.0

package inside

import (
	"fmt"
	"os"
	"os/user"
	"strconv"
	"strings"

	"github.com/gojail/gojail/gojail/config"
	"github.com/gojail/gojail/gojail/subids"
)

// person is the user whose rights a command in a jail has.
type person struct {
	name, home string
	uid, gid   uint32
	groups     []uint32
}

// nobody is the person of a command that nobody but root asks for: it owns no file, and may enter no other job.
var nobody = &person{name: "nobody", home: "/", uid: nobodyID, gid: nobodyID}

const nobodyID = 65534 // the overflow id of the kernel, too (proc_sys_fs(5))

// Runner is a person and how the person's command sees itself.
type Runner struct {
	*person
	// number of ids in the command's user namespace, in which it is root; 0: it has none, and is the person
	ids       int
	noSockets bool // it may open no Unix socket
}

// rootIDs is the number of ids in the user namespace of a command that is root of its sandbox: root alone.
const rootIDs = 1

// isMapped reports whether the command has a range of ids that are no user's, to which those of the jail's files are
// mapped.
func (r *Runner) isMapped() bool { return r.ids > rootIDs && r.uid != 0 }

// mayUseSockets reports whether the command may prove to munge, and to the like of it, who it is.
func (r *Runner) mayUseSockets() bool { return r.ids == 0 && r.person != nobody }

// sockets returns the launcher's word for the sockets that the command may not use.
func (r *Runner) sockets() string {
	switch {
	case r.noSockets:
		return "none"
	case r.mayUseSockets():
		return ""
	}
	return "hidden"
}

// findPerson finds a user by name or number in the node's account files and directory services.
func findPerson(name string) (*person, error) {
	if name == nobody.name || name == strconv.Itoa(nobodyID) {
		return nobody, nil // a node may have no such account
	}
	u, err := user.Lookup(name)
	if err != nil {
		u, err = user.LookupId(name)
	}
	if err != nil {
		return nil, fmt.Errorf("there is no user %q on this node", name)
	}
	return readPerson(u)
}

// findPersonOf finds the user with a uid.
func findPersonOf(uid uint32) (*person, error) {
	if uid == nobodyID {
		return nobody, nil
	}
	u, err := user.LookupId(strconv.FormatUint(uint64(uid), 10))
	if err != nil {
		return nil, fmt.Errorf("cannot find the account of uid %d on this node", uid)
	}
	return readPerson(u)
}

func readPerson(u *user.User) (*person, error) {
	p := &person{name: u.Username, home: u.HomeDir}
	var err error
	if p.uid, err = config.ParseID(u.Uid); err != nil {
		return nil, err
	}
	if p.gid, err = config.ParseID(u.Gid); err != nil {
		return nil, err
	}
	groups, err := u.GroupIds()
	if err != nil {
		return nil, fmt.Errorf("cannot look up the groups of user %s: %w", u.Username, err)
	}
	for _, text := range groups {
		gid, err := config.ParseID(text)
		if err != nil {
			return nil, err
		}
		p.groups = append(p.groups, gid)
	}
	return p, nil
}

// findCaller returns the person who logged in and now calls this command as root, from the file loginuid of
// proc_pid_loginuid(5). The kernel keeps it over su(1) and sudo(8), unlike a variable. Returns nobody for root, and for
// what no login has started.
func findCaller(loginuid string) (*person, error) {
	text, err := os.ReadFile(loginuid)
	if err != nil { // a kernel without audit
		return nobody, nil
	}
	const unset = 1<<32 - 1
	uid, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 32)
	if err != nil {
		return nil, fmt.Errorf("%s: cannot read who logged in: %w", loginuid, err)
	}
	if uid == 0 || uid == unset {
		return nobody, nil
	}
	p, err := findPersonOf(uint32(uid))
	if err != nil {
		return nil, fmt.Errorf("%w, who logged in here; give -u nobody", err)
	}
	return p, nil
}

// chooseRunner returns how a command runs: as its person; as root of its sandbox, if that is asked for by name; or as
// nobody, if others may. No identity is lent to programs that others may have written: the error for any other user
// begins with refusal.
func chooseRunner(name string, own *person, others bool, refusal string) (*Runner, error) {
	if name == "" {
		return &Runner{person: own}, nil
	}
	named, err := findPerson(name)
	switch {
	case err != nil:
		return nil, err
	case named.uid == 0:
		return &Runner{person: own, ids: rootIDs}, nil
	case named.uid == own.uid:
		return &Runner{person: own}, nil
	case others && named == nobody:
		return &Runner{person: nobody}, nil
	}
	return nil, fmt.Errorf("%s: the programs of a jail get no identity of user %s from root", refusal, named.name)
}

// formatArguments returns the arguments of gojail-launcher that name the user.
func (p *person) formatArguments() []string {
	var groups []string
	for _, gid := range p.groups {
		groups = append(groups, strconv.FormatUint(uint64(gid), 10))
	}
	return []string{fmt.Sprintf("uid=%d", p.uid), fmt.Sprintf("gid=%d", p.gid), "groups=" + strings.Join(groups, ",")}
}

// formatArguments returns the arguments of gojail-launcher that say how the command runs.
func (r *Runner) formatArguments() []string {
	name, ids := r.name, ""
	if r.ids > 0 {
		name, ids = "root", strconv.Itoa(r.ids)
	}
	return append(r.person.formatArguments(), "user="+name, "home="+r.home, "ids="+ids, "sockets="+r.sockets())
}

// editID is the first of the ids, on the node, of an edit: that of its root. They are the highest that are no id of a
// user's in any common numbering, and end before those that the kernel takes for "none".
const editID = 1<<32 - 2*subids.Count

// PlanEditor returns how the command of an edit runs. Its root is no user of the node if the ids of the copy can be
// mapped. Otherwise it is uid 0 with capabilities over the sandbox alone, and is kept from the node's daemons, which
// would believe that uid (SO_PEERCRED of unix(7)): by the kernel, if that can isolate abstract sockets, or else without
// Unix sockets.
func PlanEditor(canMap, canScope bool) (who *Runner, sockets string) {
	who, sockets = &Runner{person: &person{name: "root", home: "/root"}, ids: subids.Count}, config.AbstractStep
	if canMap {
		who.uid, who.gid = editID, editID
	}
	if !canScope {
		who.noSockets, sockets = !canMap, config.AbstractNode
	}
	return who, sockets
}
