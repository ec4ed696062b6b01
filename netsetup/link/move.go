// SPDX-License-Identifier: Apache-2.0

package link

import (
	"errors"
	"fmt"
	"slices"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// Moved is a link in the namespace to which Move moved it.
type Moved struct {
	Link
	Dropped []string // conflicting alternative names that Move removed; AddAltNames restores them
}

// Move moves a link to another namespace and renames it, in one message, so that neither
// namespace sees it under a name that is in use, and no udev renames it in between. The link
// is set down. It loses its addresses and routes and keeps MAC and MTU; its index may
// change.
//
// Move first removes alternative names that are taken in the namespace to, or equal the new
// name, because the kernel refuses the move otherwise. It fails with ErrNameTaken if the new
// name is taken in to. After an error the link is in its old namespace with all its names,
// but down.
func Move(from *Namespace, index int, to *Namespace, name string) (Moved, error) {
	l, err := from.FindByIndex(index)
	if err != nil {
		return Moved{}, err
	}
	asked := fmt.Sprintf("move network interface %s to another namespace as %s", l, name)
	if len(name) == 0 || len(name) >= unix.IFNAMSIZ {
		return Moved{}, fmt.Errorf("%s: a name has 1 to %d characters", asked, unix.IFNAMSIZ-1)
	}
	clashes, err := findConflictingAltNames(l, to, name)
	if err != nil {
		return Moved{}, fmt.Errorf("%s: %w", asked, err)
	}
	if err := from.SetDown(index); err != nil {
		return Moved{}, fmt.Errorf("%s: %w", asked, err)
	}
	if err := from.dropAltNames(index, clashes); err != nil {
		return Moved{}, fmt.Errorf("%s: %w", asked, err)
	}
	err = from.moveOrReturn(l, to, name)
	if err == nil {
		found, err := to.FindByName(name)
		return Moved{found, clashes}, err
	}
	if errors.Is(err, unix.EEXIST) {
		err = ErrNameTaken
	}
	err = explainError(err, "%s", asked)
	if back, found := from.FindByName(l.Name); found == nil { // its index may have changed
		err = errors.Join(err, from.AddAltNames(back.Index, clashes))
	}
	return Moved{}, err
}

// moveOrReturn moves a link and fetches it back after a failed rename. If the kernel finds
// only during the move that the new name is taken, it returns EEXIST, yet leaves the link in
// the target under its old name (seen with Linux 6.18: do_setlink moves first and renames
// then).
func (n *Namespace) moveOrReturn(l Link, to *Namespace, name string) error {
	err := n.sendMove(l.Index, to, name)
	if err == nil {
		return nil
	}
	if now, found := n.FindByIndex(l.Index); found == nil && now.isSameAs(l) {
		return err
	}
	stray, found := to.FindByName(l.Name)
	if found != nil || !stray.isSameAs(l) {
		return errors.Join(err, fmt.Errorf("and it is in neither namespace: %w", ErrNotFound))
	}
	return errors.Join(err, explainError(to.sendMove(stray.Index, n, l.Name), "move network interface %s back", l))
}

func (l Link) isSameAs(other Link) bool {
	return l.PCI == other.PCI && slices.Equal(l.MAC, other.MAC) && l.Kind == other.Kind
}

// sendMove sends the message that moves a link. IFLA_IFNAME is the link's name in the target
// (net/core/dev.c, __dev_change_net_namespace).
func (n *Namespace) sendMove(index int, to *Namespace, name string) error {
	req := n.newRequest(unix.RTM_NEWLINK, unix.NLM_F_ACK)
	msg := nl.NewIfInfomsg(unix.AF_UNSPEC)
	msg.Index = int32(index)
	req.AddData(msg)
	req.AddData(nl.NewRtAttr(unix.IFLA_NET_NS_FD, nl.Uint32Attr(uint32(to.fd))))
	req.AddData(nl.NewRtAttr(unix.IFLA_IFNAME, nl.ZeroTerminated(name)))
	_, err := req.Execute(unix.NETLINK_ROUTE, 0)
	return err
}

// findConflictingAltNames returns the alternative names of l that are taken in the namespace
// to, or equal the new name. It fails with ErrNameTaken if the new name is taken.
func findConflictingAltNames(l Link, to *Namespace, name string) ([]string, error) {
	if other, err := to.FindByName(name); err == nil {
		return nil, fmt.Errorf("%w by %s in the target namespace; run gojail sweep, or rename that interface",
			ErrNameTaken, other)
	} else if !errors.Is(err, ErrNotFound) {
		return nil, err
	}
	var clash []string
	for _, alternative := range l.AltNames {
		_, err := to.FindByName(alternative)
		if err != nil && !errors.Is(err, ErrNotFound) {
			return nil, err
		}
		if err == nil || alternative == name {
			clash = append(clash, alternative)
		}
	}
	return clash, nil
}

// Rename renames a link in its own namespace, for a link that came back under a job's name.
// The link is set down. Rename fails with ErrNameTaken if another link has the name.
func (n *Namespace) Rename(index int, name string) error {
	l, err := n.FindByIndex(index)
	if err != nil || l.Name == name {
		return err
	}
	asked := fmt.Sprintf("rename network interface %s to %s", l, name)
	if other, err := n.FindByName(name); err == nil && other.Index != index {
		return fmt.Errorf("%s: %w by %s; run gojail sweep, or rename that interface", asked, ErrNameTaken, other)
	}
	if err := n.SetDown(index); err != nil {
		return fmt.Errorf("%s: %w", asked, err)
	}
	if slices.Contains(l.AltNames, name) {
		if err := n.dropAltNames(index, []string{name}); err != nil {
			return fmt.Errorf("%s: %w", asked, err)
		}
	}
	return explainError(n.handle.LinkSetName(linkAt(index), name), "%s", asked)
}
