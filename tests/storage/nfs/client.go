// SPDX-License-Identifier: Apache-2.0

package nfs

import (
	"fmt"
	"os/exec"
	"strings"
	"time"
)

// mountPort is rpc.mountd's, which clients of NFSv3 ask for a first file handle.
const mountPort = "20048"

// Client is a host with a link to the server.
type Client struct {
	Name    string
	Address string
	host    namespace
	server  *Server
	link    string // the server's end
}

// NewClient makes a client with a name and an address of its own.
func (s *Server) NewClient(name string) (*Client, error) {
	s.clients++
	c := &Client{Name: name, Address: fmt.Sprintf("198.18.0.%d", 10+s.clients), server: s, link: fmt.Sprintf("to%d", s.clients)}
	var err error
	if c.host, err = newNamespace(`hostname "$1"`, name); err != nil {
		return nil, err
	}
	steps := [][]string{
		{"ip", "link", "add", c.link, "netns", s.inside.holderPid(), "type", "veth", "peer", "name", "eth0", "netns", c.host.holderPid()},
		{"ip", "-n", "s", "link", "set", c.link, "master", "clients", "up"},
		{"ip", "-n", "c", "address", "add", c.Address + "/24", "dev", "eth0"},
		{"ip", "-n", "c", "link", "set", "eth0", "up"},
	}
	for _, step := range steps {
		if step[1] != "-n" {
			_, err = runCommand(exec.Command(step[0], step[1:]...))
		} else if rest := append([]string{"ip"}, step[3:]...); step[2] == "s" {
			err = s.inside.runInside(rest...)
		} else {
			err = c.host.runInside(rest...)
		}
		if err != nil {
			c.Close()
			return nil, err
		}
	}
	return c, nil
}

// Close ends the client's host, and with its network namespace the link. What it has mounted stays, without a connection.
func (c *Client) Close() { c.host.close() }

// Mount mounts a path of the server's with options of nfs(5), hard as that has it,
// on target in the mount namespace behind the file mounts. Each mount has a
// superblock, and with it caches and counters, of its own.
func (c *Client) Mount(mounts, version, path, target string, options ...string) error {
	fstype, all := "nfs4", []string{"hard", "nosharecache", "vers=" + version, "addr=" + Address, "clientaddr=" + c.Address}
	if strings.HasPrefix(version, "3") {
		fstype, all = "nfs", []string{"hard", "nosharecache", "nolock", "vers=3", "addr=" + Address, "proto=tcp", "port=2049",
			"mountaddr=" + Address, "mountproto=tcp", "mountport=" + mountPort}
	}
	_, err := runCommand(exec.Command("nsenter", "--mount="+mounts, "--net=/proc/"+c.host.holderPid()+"/ns/net", "--uts=/proc/"+c.host.holderPid()+"/ns/uts", "--",
		"mount", "-i", "-t", fstype, "-o", strings.Join(append(all, options...), ","), Address+":"+path, target))
	return err
}

// Cut drops each packet between client and server, until Restore: nothing answers, nothing refuses.
func (c *Client) Cut() error { return c.impairLink("loss", "100%") }

// Delay makes each packet later, by half of what it shall add to a round trip.
func (c *Client) Delay(roundTrip time.Duration) error {
	return c.impairLink("delay", fmt.Sprintf("%dus", (roundTrip/2).Microseconds()))
}

// Restore undoes Cut and Delay.
func (c *Client) Restore() error { return c.impairLink("delay", "0ms") }

// impairLink gives both ends of the link a queue (tc-netem(8)).
func (c *Client) impairLink(how ...string) error {
	if err := c.host.runInside(append([]string{"tc", "qdisc", "replace", "dev", "eth0", "root", "netem"}, how...)...); err != nil {
		return err
	}
	return c.server.inside.runInside(append([]string{"tc", "qdisc", "replace", "dev", c.link, "root", "netem"}, how...)...)
}
