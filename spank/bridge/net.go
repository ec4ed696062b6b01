// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/gojail/config"
	"github.com/gojail/gojail/gojail/mount"
	"github.com/gojail/gojail/gojail/node"
	"github.com/gojail/gojail/internal/trusted"
	"github.com/gojail/gojail/netsetup/attach"
	netconfig "github.com/gojail/gojail/netsetup/config"
	"github.com/gojail/gojail/netsetup/fabric"
	"github.com/gojail/gojail/netsetup/fabric/https"
	"github.com/gojail/gojail/netsetup/gres"
	"github.com/gojail/gojail/netsetup/inventory"
	"github.com/gojail/gojail/netsetup/link"
)

// networkPath is network.toml, which lies beside gojail.toml.
func (r *request) networkPath() string {
	return filepath.Join(filepath.Dir(r.words["config"]), filepath.Base(netconfig.DefaultPath))
}

// networks is what the site file gets of network.toml. A network.toml that is
// there and wrong stops every step: it may say that jobs have a network by default.
func (r *request) networks() (n config.Networks, err error) {
	if n.Identity, err = trusted.Identify(r.networkPath()); n.Identity == nil || err != nil {
		return n, err
	}
	c, err := netconfig.Load(r.networkPath(), r.words["node"])
	if err != nil {
		return n, err
	}
	n.Default = c.Default
	return n, nil
}

// network is netsetup's view of this node, through one of attach.Files' methods; end is never nil.
// See attach.Files.Open of what a Site is good for that comes with an error.
func (r *request) network(open func(attach.Files) (attach.Site, func(), error)) (site attach.Site, end func(), err error) {
	c, err := r.load()
	if err != nil {
		return attach.Site{Host: -1}, func() {}, err
	}
	fabric.HTTPS = https.New
	return open(attach.Files{
		Config: r.networkPath(), Node: r.words["node"], Cluster: node.SlurmValue(c, "ClusterName"),
		State: r.words["state"], Scratch: c.Scratch,
	})
}

// net attaches the job's rails to the network namespace of the holder, shows their
// RDMA devices in its /dev, and leaves what the tasks' environment gets.
func (r *request) net() ([]mount.Tree, error) {
	site, end, err := r.network(attach.Files.Open)
	defer end()
	if site.Host >= 0 && errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("this node has no %s, hence no rails; leave the option out, or ask your administrator", r.networkPath())
	}
	if err != nil {
		return nil, fmt.Errorf("--jail-net=%s: %w", r.words["net"], err)
	}
	holder, err := strconv.Atoi(r.words["holder"])
	if err != nil {
		return nil, fmt.Errorf("net: holder=%q is not a process", r.words["holder"])
	}
	namespace, err := os.Open(fmt.Sprintf("/proc/%d/ns/net", holder))
	if err != nil {
		return nil, fmt.Errorf("the job's sandbox ended while its network was attached: %w", err)
	}
	defer namespace.Close()
	job := attach.Job{ID: r.words["job"], Netns: int(namespace.Fd()), Label: r.words["net"]}
	if err := r.given(&job, site.Config); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithDeadline(context.Background(), r.until())
	defer cancel()
	got, err := attach.Attach(ctx, site, job)
	if err != nil {
		return nil, err
	}
	if err := showFiles(holder, got); err != nil {
		return nil, err
	}
	path := filepath.Join(r.words["state"], "jobs", job.ID, ".net.env")
	if err := os.WriteFile(path, []byte(strings.Join(got.Env, "\n")+"\n"), 0o600); err != nil {
		return nil, fmt.Errorf("cannot write %s: %w; is the state directory full?", path, err)
	}
	return nil, nil
}

// given is what Slurm gave the job. A user can set the variables where no plugin
// of Slurm does: NICs count only with GresTypes=nic. GPUs are a mere preference.
func (r *request) given(job *attach.Job, cfg *netconfig.Config) error {
	if r.words["nics"] == "" && r.words["gpus"] == "" {
		return nil
	}
	c, err := r.load()
	if err != nil {
		return err
	}
	types := strings.Split(node.SlurmValue(c, "GresTypes"), ",")
	inv, err := inventory.Read(inventory.Host)
	if err != nil {
		return err
	}
	for _, name := range types {
		switch strings.TrimSpace(name) {
		case "nic":
			devices, err := gres.Devices(cfg, inv)
			if err != nil {
				return err
			}
			given, err := gres.Given(r.words["nics"], devices)
			if err != nil {
				return err
			}
			for _, d := range given {
				job.Devices = append(job.Devices, d.VF.PCI)
			}
		case "gpu":
			given, _ := gres.GivenGPUs(r.words["gpus"], inv) // another numbering is no reason to fail
			for _, g := range given {
				job.GPUs = append(job.GPUs, g.PCI)
			}
		}
	}
	return nil
}

// showFiles makes the device nodes of the job's RDMA devices in the sandbox, whose
// /dev/infiniband is a file system of its own. They go with it.
func showFiles(holder int, got *attach.Network) error {
	if len(got.Files) == 0 {
		return nil
	}
	root, err := unix.Open(fmt.Sprintf("/proc/%d/root", holder), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("the job's sandbox ended while its network was attached: %w", err)
	}
	defer unix.Close(root)
	how := unix.OpenHow{Flags: unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC, Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_SYMLINKS}
	dir, err := unix.Openat2(root, "/dev/infiniband", &how)
	if err != nil {
		return fmt.Errorf("the jail has no /dev/infiniband for the devices of its rails: %w", err)
	}
	defer unix.Close(dir)
	if err := gojailsOwn(dir); err != nil {
		return err
	}
	for _, f := range got.Files {
		if err := showFile(dir, f); err != nil {
			return fmt.Errorf("cannot show /dev/%s to the job: %w", f.Path, err)
		}
	}
	return nil
}

// gojailsOwn refuses all but the tmpfs that the holder mounted there: who owns the
// jail's root can put a directory of theirs in its place while the rails are attached.
func gojailsOwn(dir int) error {
	var st unix.Stat_t
	var fs unix.Statfs_t
	if err := errors.Join(unix.Fstat(dir, &st), unix.Fstatfs(dir, &fs)); err != nil {
		return err
	}
	if fs.Type != unix.TMPFS_MAGIC || st.Uid != 0 || st.Mode&0o022 != 0 {
		return errors.New("/dev/infiniband of the jail is not what was mounted there; did somebody rename it in the jail's root? Run: gojail reload")
	}
	return nil
}

// showFile makes one, or finds it there from an earlier step of the job.
func showFile(dir int, f link.CharDevice) error {
	name := filepath.Base(f.Path)
	mask := unix.Umask(0) // no chmod by name; the library's process is the only one of its file system state
	defer unix.Umask(mask)
	mode := uint32(0o666)
	if strings.HasPrefix(name, "issm") {
		mode = 0o600 // who opens it tells the fabric of a subnet manager there (drivers/infiniband/core/user_mad.c)
	}
	err := unix.Mknodat(dir, name, unix.S_IFCHR|mode, int(f.Number()))
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	var st unix.Stat_t
	if err := unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFCHR || st.Rdev != f.Number() {
		return errors.New("another file is there, of a network that the job had before; submit the job again")
	}
	return nil
}

// releaseNet gives a job's VFs back. What it cannot do now, the sweep does.
func (r *request) releaseNet(job string) error {
	if !r.hasNet(job) {
		return nil
	}
	site, end, err := r.network(attach.Files.Open)
	defer end()
	if site.Host < 0 {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	return errors.Join(err, attach.Release(ctx, site, job))
}

func (r *request) hasNet(job string) bool {
	_, err := os.Lstat(filepath.Join(attach.Dir(r.words["state"]), "jobs", job+".json"))
	return err == nil
}

// sweepNet gives back the VFs of jobs that are gone.
func (r *request) sweepNet(alive func(job string) bool) error {
	if _, err := os.Lstat(attach.Dir(r.words["state"])); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	site, end, err := r.network(attach.Files.OpenToSweep)
	defer end()
	if site.Host < 0 {
		return err
	}
	ctx, cancel := context.WithDeadline(context.Background(), r.until())
	defer cancel()
	_, failed := attach.Sweep(ctx, site, alive)
	return errors.Join(err, failed)
}
