// SPDX-License-Identifier: Apache-2.0

package link

import (
	"errors"
	"fmt"
	"slices"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// Moved is a link in the namespace that Move brought it to.
type Moved struct {
	Link
	Dropped []string // alternative names that stood in the way and are gone; AddAltNames sets them again
}

// Move moves a link to another namespace and gives it a name there, in one
// message, so that neither namespace ever sees it under a name that is in use
// and no udev renames it in between. The link is set down; the kernel takes its
// addresses and routes; MAC and MTU stay. Its index may be another one there.
//
// Alternative names that are in use in to, or are the new name, are removed
// first: the kernel refuses the move otherwise. After an error the link is where
// it was, with its names, but down. The error is ErrNameTaken if to has the name.
func Move(from *Namespace, index int, to *Namespace, name string) (Moved, error) {
	l, err := from.ByIndex(index)
	if err != nil {
		return Moved{}, err
	}
	asked := fmt.Sprintf("move network interface %s to another namespace as %s", l, name)
	if len(name) == 0 || len(name) >= unix.IFNAMSIZ {
		return Moved{}, fmt.Errorf("%s: a name has 1 to %d characters", asked, unix.IFNAMSIZ-1)
	}
	clashes, err := clashes(l, to, name)
	if err != nil {
		return Moved{}, fmt.Errorf("%s: %w", asked, err)
	}
	if err := from.Down(index); err != nil {
		return Moved{}, fmt.Errorf("%s: %w", asked, err)
	}
	if err := from.dropAltNames(index, clashes); err != nil {
		return Moved{}, fmt.Errorf("%s: %w", asked, err)
	}
	err = from.moveOrStay(l, to, name)
	if err == nil {
		found, err := to.ByName(name)
		return Moved{found, clashes}, err
	}
	if errors.Is(err, unix.EEXIST) {
		err = ErrNameTaken
	}
	err = failed(err, "%s", asked)
	if back, found := from.ByName(l.Name); found == nil { // by another index, if it had gone
		err = errors.Join(err, from.AddAltNames(back.Index, clashes))
	}
	return Moved{}, err
}

// moveOrStay moves. A kernel that finds the new name taken only now returns
// EEXIST, yet leaves the link in the target under its old name (seen with Linux
// 6.18: do_setlink moves first and renames then); it is fetched back.
func (n *Namespace) moveOrStay(l Link, to *Namespace, name string) error {
	err := n.move(l.Index, to, name)
	if err == nil {
		return nil
	}
	if now, found := n.ByIndex(l.Index); found == nil && now.same(l) {
		return err
	}
	stray, found := to.ByName(l.Name)
	if found != nil || !stray.same(l) {
		return errors.Join(err, fmt.Errorf("and it is in neither namespace: %w", ErrNotFound))
	}
	return errors.Join(err, failed(to.move(stray.Index, n, l.Name), "move network interface %s back", l))
}

func (l Link) same(other Link) bool {
	return l.PCI == other.PCI && slices.Equal(l.MAC, other.MAC) && l.Kind == other.Kind
}

// move is the message. IFLA_IFNAME is the name that the link has in the target
// (net/core/dev.c, __dev_change_net_namespace).
func (n *Namespace) move(index int, to *Namespace, name string) error {
	req := n.request(unix.RTM_NEWLINK, unix.NLM_F_ACK)
	msg := nl.NewIfInfomsg(unix.AF_UNSPEC)
	msg.Index = int32(index)
	req.AddData(msg)
	req.AddData(nl.NewRtAttr(unix.IFLA_NET_NS_FD, nl.Uint32Attr(uint32(to.fd))))
	req.AddData(nl.NewRtAttr(unix.IFLA_IFNAME, nl.ZeroTerminated(name)))
	_, err := req.Execute(unix.NETLINK_ROUTE, 0)
	return err
}

// clashes are the alternative names of l that to, or the new name itself, will not bear.
func clashes(l Link, to *Namespace, name string) ([]string, error) {
	if other, err := to.ByName(name); err == nil {
		return nil, fmt.Errorf("%w there by %s; sweep or rename that one", ErrNameTaken, other)
	} else if !errors.Is(err, ErrNotFound) {
		return nil, err
	}
	var clash []string
	for _, alternative := range l.AltNames {
		_, err := to.ByName(alternative)
		if err != nil && !errors.Is(err, ErrNotFound) {
			return nil, err
		}
		if err == nil || alternative == name {
			clash = append(clash, alternative)
		}
	}
	return clash, nil
}

// Rename gives a link another name in its own namespace: for one that came home
// under a job's name. The link is set down. ErrNameTaken: another link has it.
func (n *Namespace) Rename(index int, name string) error {
	l, err := n.ByIndex(index)
	if err != nil || l.Name == name {
		return err
	}
	asked := fmt.Sprintf("rename network interface %s to %s", l, name)
	if other, err := n.ByName(name); err == nil && other.Index != index {
		return fmt.Errorf("%s: %w by %s; sweep or rename that one", asked, ErrNameTaken, other)
	}
	if err := n.Down(index); err != nil {
		return fmt.Errorf("%s: %w", asked, err)
	}
	if slices.Contains(l.AltNames, name) {
		if err := n.dropAltNames(index, []string{name}); err != nil {
			return fmt.Errorf("%s: %w", asked, err)
		}
	}
	return failed(n.handle.LinkSetName(on(index), name), "%s", asked)
}
