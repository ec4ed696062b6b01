// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Options of a cluster; the zero value is a plain Slurm without gojail.
type Options struct {
	Name       string            // directory below build/cluster; default: a new one, test-*
	Plugin     bool              // install gojail from build/ and name it in plugstack.conf
	Jails      []string          // root file systems to make as /srv/jails/NAME
	Config     string            // gojail.toml; default: DefaultConfig
	SlurmConf  map[string]string // lines of slurm.conf to replace or add
	Files      map[string]string // programs to put into the machine, by path
	CPUs       int               // of each node, default 16; more than the machine has is fine
	Bare       bool              // leave gojail init to the caller
	Outlive    bool              // stay when the process that starts it ends
	Constrain  bool              // Slurm keeps each job to its devices, in cgroups of the machine's own
	HostNet    bool              // the network of this machine, with its cards, which must be a VM of the tests
	Accounting bool              // slurmdbd, on a database of the machine's own
	NoConf     bool              // slurmd gets slurm.conf and plugstack.conf from slurmctld; there is no /etc/slurm
	OneCPU     bool              // namespaces and daemons on one CPU, see oneCPU
}

// Cluster is a running private Slurm.
type Cluster struct {
	Name     string
	Dir      string // build/cluster/NAME
	Pid      int    // of the keeper, in this machine's PID namespace
	repo     string
	base     base
	root     string // of the machine, on disk
	options  Options
	pidfd    int
	test     testing.TB // the latest that uses it, see ShowLogs
	lifeline *os.File
}

// Nodes of every cluster.
var Nodes = findNodes()

// Up starts a cluster and returns when both nodes are idle.
func Up(options Options) (*Cluster, error) {
	c, err := newCluster(options)
	if err != nil {
		return nil, err
	}
	steps := []func() error{c.makeRoot, c.startKeeper, c.initJails, c.startDaemons}
	if options.NoConf { // only slurmd brings what gojail init reads
		slices.Reverse(steps[2:])
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return nil, errors.Join(err, c.Stop())
		}
	}
	return c, nil
}

// initJails creates the mount targets in each jail, as an administrator does once.
func (c *Cluster) initJails() error {
	if !c.options.Plugin || c.options.Bare {
		return nil
	}
	for _, jail := range c.options.Jails {
		for _, node := range Nodes {
			if r := c.Gojail(node, "init", jail); r.Code != 0 {
				return fmt.Errorf("cluster: gojail init %s: %s", jail, r)
			}
		}
	}
	return nil
}

func newCluster(options Options) (*Cluster, error) {
	if os.Geteuid() != 0 {
		return nil, errors.New("cluster: a private cluster needs root: it makes namespaces and mounts")
	}
	repo, err := Repository()
	if err != nil {
		return nil, err
	}
	from, err := findBase(repo)
	if err != nil {
		return nil, err
	}
	if options.CPUs == 0 {
		options.CPUs = 16
	}
	if options.Config == "" {
		options.Config = DefaultConfig
	}
	all := filepath.Join(repo, "build/cluster")
	if err := os.MkdirAll(all, 0o755); err != nil {
		return nil, err
	}
	c := &Cluster{Name: options.Name, repo: repo, base: from, options: options, pidfd: -1}
	if c.Name == "" {
		removeStale(all)
		if c.Dir, err = os.MkdirTemp(all, "test-"); err != nil {
			return nil, err
		}
		c.Name = filepath.Base(c.Dir)
	} else {
		c.Dir = filepath.Join(all, c.Name)
		if running, err := Attach(c.Name); err == nil {
			return nil, fmt.Errorf("cluster: %s is running already (pid %d); end it with make cluster-down", c.Name, running.Pid)
		}
		if err := os.RemoveAll(c.Dir); err != nil {
			return nil, err
		}
	}
	c.root = filepath.Join(c.Dir, "root")
	if err := os.MkdirAll(c.Dir, 0o755); err != nil || options.Outlive {
		return c, err
	}
	return c, recordProcess(filepath.Join(c.Dir, ownerFile), os.Getpid())
}

// ownerFile has the process with which a cluster ends. It is written first: a busy machine takes minutes to make a cluster.
const ownerFile = "owner"

// removeStale ends and removes the clusters of test processes that were killed.
func removeStale(all string) {
	old, _ := filepath.Glob(filepath.Join(all, "test-*"))
	for _, dir := range old {
		orphaned, err := isOrphaned(dir)
		if info, statErr := os.Stat(dir); statErr != nil || err != nil && time.Since(info.ModTime()) < time.Hour {
			continue // its owner is not recorded yet
		}
		if err == nil && !orphaned {
			continue
		}
		c, attachErr := Attach(filepath.Base(dir))
		switch {
		case attachErr != nil:
			os.RemoveAll(dir)
		case orphaned:
			c.Stop()
		default:
			unix.Close(c.pidfd)
		}
	}
}

// isOrphaned reports whether the process that started a cluster is gone. A dead one with a thread in a hung
// file system stays a zombie and keeps the lifeline open.
func isOrphaned(dir string) (bool, error) {
	owner, err := os.ReadFile(filepath.Join(dir, ownerFile))
	if err != nil {
		return false, err
	}
	var pid int
	var start string
	if _, err := fmt.Sscan(string(owner), &pid, &start); err != nil {
		return false, err
	}
	state, now, err := processStat(pid)
	return err != nil || now != start || state == "Z", nil
}

// Repository returns the root of the work tree: the directory of go.mod.
func Repository() (string, error) {
	dir, err := os.Getwd()
	for ; err == nil; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		if dir == "/" {
			err = errors.New("cluster: not inside the repository: no go.mod above the working directory")
			return "", err
		}
	}
	return "", err
}

func (c *Cluster) startKeeper() error {
	report, reportEnd, err := os.Pipe()
	if err != nil {
		return err
	}
	defer report.Close()
	defer reportEnd.Close()
	life, lifeEnd, err := os.Pipe()
	if err != nil {
		return err
	}
	defer life.Close()
	log, err := os.Create(filepath.Join(c.Dir, "keeper.log"))
	if err != nil {
		return err
	}
	defer log.Close()
	keeper := c.keeperCommand(log, reportEnd, life)
	cgroup, err := c.setCgroup(keeper.SysProcAttr)
	if err != nil {
		return err
	}
	defer cgroup.Close()
	if c.options.OneCPU {
		defer pinToOneCPU()()
	}
	if err := keeper.Start(); err != nil {
		lifeEnd.Close()
		return fmt.Errorf("cluster: start the keeper in new namespaces: %w", err)
	}
	c.Pid, c.lifeline = keeper.Process.Pid, lifeEnd
	go keeper.Wait()
	reportEnd.Close()
	line, _ := bufio.NewReader(report).ReadString('\n')
	if line = strings.TrimSpace(line); line != "ready" {
		return fmt.Errorf("cluster: the keeper failed: %s", line)
	}
	return recordProcess(filepath.Join(c.Dir, "pid"), c.Pid)
}

// keeperCommand returns the command of the cluster's process 1, in new namespaces.
func (c *Cluster) keeperCommand(log *os.File, files ...*os.File) *exec.Cmd {
	bound := "bound"
	if c.options.Outlive {
		bound = "free"
	}
	keeper := exec.Command("/proc/self/exe")
	cgroups := "shared"
	if c.options.Constrain {
		cgroups = "own"
	}
	keeper.Args = []string{keeperName, c.root, c.base.root, bound, cgroups}
	keeper.Env = []string{"PATH=/usr/sbin:/usr/bin", "GOMAXPROCS=1"}
	keeper.Stdout, keeper.Stderr = log, log
	keeper.ExtraFiles = files
	keeper.SysProcAttr = &syscall.SysProcAttr{
		Setsid: true, PidFD: &c.pidfd,
		Cloneflags: unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC,
	}
	if c.options.HostNet {
		keeper.SysProcAttr.Cloneflags &^= unix.CLONE_NEWNET
	}
	return keeper
}

// Attach finds a cluster that another process started.
func Attach(name string) (*Cluster, error) {
	repo, err := Repository()
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(repo, "build/cluster", name)
	c := &Cluster{Name: name, Dir: dir, root: filepath.Join(dir, "root"), repo: repo}
	record, err := os.ReadFile(filepath.Join(dir, "pid"))
	if err != nil {
		return nil, fmt.Errorf("cluster: %s is not running", name)
	}
	var start string
	if _, err := fmt.Sscan(string(record), &c.Pid, &start); err != nil {
		return nil, fmt.Errorf("cluster: %s/pid is damaged: %w", dir, err)
	}
	if c.pidfd, err = unix.PidfdOpen(c.Pid, 0); err != nil {
		return nil, fmt.Errorf("cluster: %s is not running", name)
	}
	if _, now, err := processStat(c.Pid); err != nil || now != start {
		unix.Close(c.pidfd)
		return nil, fmt.Errorf("cluster: %s is not running", name)
	}
	return c, nil
}

// Stop ends every process of the cluster and removes its directory.
func (c *Cluster) Stop() error {
	if c.pidfd >= 0 {
		// The kernel kills the whole PID namespace and reaps it before pid 1 is gone.
		unix.PidfdSendSignal(c.pidfd, unix.SIGKILL, nil, 0)
		if !Poll(Timeout, func() bool { return hasEnded(c.pidfd) }) {
			return fmt.Errorf("cluster: pid %d of %s does not end", c.Pid, c.Name)
		}
		unix.Close(c.pidfd)
		c.pidfd = -1
	}
	if c.lifeline != nil {
		c.lifeline.Close()
	}
	return errors.Join(c.removeCgroups(), os.RemoveAll(c.Dir))
}
