// SPDX-License-Identifier: Apache-2.0

package check

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/gojail/config"
	"github.com/gojail/gojail/gojail/node"
	"github.com/gojail/gojail/internal/oneline"
	"github.com/gojail/gojail/internal/rootpath"
)

// lineMax is the limit of the first line of a script that the kernel reads (BINPRM_BUF_SIZE, execve(2)).
const lineMax = 256

// programLack is why a program of slurm.conf cannot be executed, and what to do; the zero value: it can.
type programLack struct {
	why, remedy string
	isMissing   bool
	admitsSome  bool // a group or an ACL lets some users execute it
}

// findProgramLack returns why the kernel cannot execute a program of the node (execve(2)).
func findProgramLack(path string) programLack {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return programLack{why: "does not exist"}
	case err != nil:
		return programLack{why: "cannot be found: " + oneline.Cause(err).Error()}
	case !info.Mode().IsRegular():
		return programLack{why: "is not a regular file"}
	case info.Mode()&0o111 == 0:
		return programLack{why: "is not executable", remedy: "run: chmod 755 " + oneline.ShellWord(path)}
	}
	f, err := os.Open(path)
	if err != nil {
		return programLack{}
	}
	defer f.Close()
	return findScriptLack(f, path, rootpath.Exists)
}

// findScriptLack returns why the kernel cannot execute the first line of a script. path is the script's on the node.
func findScriptLack(f io.Reader, path string, exists func(string) bool) programLack {
	text, _ := io.ReadAll(io.LimitReader(f, lineMax))
	line, isScript := bytes.CutPrefix(text, []byte("#!"))
	if !isScript {
		return programLack{}
	}
	line, _, _ = bytes.Cut(line, []byte("\n"))
	interpreter := strings.TrimLeft(string(line), " \t")
	if end := strings.IndexAny(interpreter, " \t"); end >= 0 { // spacetab of fs/binfmt_script.c
		interpreter = interpreter[:end]
	}
	switch {
	case strings.HasSuffix(interpreter, "\r"):
		return programLack{why: "has lines that end with a carriage return, as Windows writes them",
			remedy: `run: sed -i 's/\r$//' ` + oneline.ShellWord(path)}
	case interpreter == "" || !exists(interpreter):
		return programLack{why: "is a script of " + oneline.Printable(interpreter) + ", which does not exist",
			remedy: "install it, or correct the first line of " + path}
	}
	return programLack{}
}

// checkScripts reports a Prolog or Epilog that slurmd cannot run, for which it fails each job and drains the node. It
// reports whether slurmd can run the Prologs. own is the path of gojail's.
func (c *checker) checkScripts(conf node.SlurmConf, own string) bool {
	good := true
	for _, one := range []struct {
		key, does string
		values    []string
	}{
		{"Prolog", "every job fails and drains this node", conf.Prologs},
		{"Epilog", "the end of each job drains this node", []string{conf.Values["epilog"]}},
	} {
		for _, value := range one.values {
			if value == "" || strings.ContainsAny(value, "*?[") {
				continue // a pattern may match none
			}
			lack := findProgramLack(conf.Beside(value))
			if lack.why == "" {
				continue
			}
			good = good && one.key != "Prolog"
			remedy := lack.remedy
			switch {
			case remedy != "":
			case strings.HasPrefix(filepath.Base(value), "prolog-") && rootpath.Exists(own):
				remedy = describeEdit(conf, "replace "+one.key+"="+value+" by "+one.key+"="+own)
			default:
				remedy = "put the script there on each node, or " + describeEdit(conf, "remove "+one.key+"="+value)
			}
			c.fail(strings.ToLower(one.key), remedy, "%s=%s %s: %s", one.key, value, lack.why, one.does)
		}
	}
	return good
}

// describeEdit returns an edit of slurm.conf with what puts it into effect.
func describeEdit(conf node.SlurmConf, edit string) string {
	return edit + " in " + filepath.Join(conf.Dir, "slurm.conf") + ", and run: scontrol reconfigure"
}

// checkTaskPrograms reports a TaskProlog or TaskEpilog of slurm.conf that users cannot execute in a jail: slurmstepd
// runs both there, as the user, and fails the step if the first one cannot be executed (exec_task in task.c).
func (c *checker) checkTaskPrograms(j *config.Jail, root int, mounts []specs.Mount) {
	conf := node.ReadSlurmConf(c.config)
	for _, key := range []string{"TaskProlog", "TaskEpilog"} {
		path := conf.Values[strings.ToLower(key)]
		if path == "" || strings.ContainsAny(path, " *,") {
			continue
		}
		lack := programLack{why: "is not an absolute path", remedy: describeEdit(conf, "remove "+key+"="+path)}
		if filepath.IsAbs(path) {
			lack = c.findTaskLack(j, root, mounts, path)
		}
		if lack.isMissing {
			lack.remedy += ", or " + describeEdit(conf, "remove "+key+"="+path)
		}
		switch {
		case lack.why == "":
		case lack.admitsSome:
			c.warn("jail "+j.Name, lack.remedy, "%s of slurm.conf, %s, %s: every step of another user fails", key, path,
				lack.why)
		case key == "TaskProlog":
			c.failIn(isContent(j, path), "jail "+j.Name, lack.remedy, "%s of slurm.conf, %s, %s: every step fails", key,
				path, lack.why)
		default:
			c.warn("jail "+j.Name, lack.remedy, "%s of slurm.conf, %s, %s and does not run", key, path, lack.why)
		}
	}
}

// findTaskLack returns why users cannot execute a path in a jail: a file of its root, or one of the node that a mount
// shows there.
func (c *checker) findTaskLack(j *config.Jail, root int, mounts []specs.Mount, path string) programLack {
	isMounted := func(path string) bool { return findMountOf(mounts, path) != nil }
	m := findMountOf(mounts, path)
	if m == nil && leadsToMount(root, path, isMounted) {
		return programLack{} // a link, as /bin to usr/bin, leads into a mount
	}
	exists := func(interpreter string) bool { return !isMissingIn(root, interpreter, isMounted) }
	if m == nil {
		return findLackIn(root, path, "/", exists, "in "+j.Root,
			"install it there, or add it to host = of the jail and run gojail init "+j.Name)
	}
	switch {
	case m.Type != "bind":
		return programLack{} // a file system that each job has for itself
	case slices.Contains(m.Options, "noexec"):
		return programLack{why: "is on a mount with noexec (" + m.Destination + ")",
			remedy: "put it into another directory"}
	}
	top, err := unix.Open("/", unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return programLack{}
	}
	defer unix.Close(top)
	return findLackIn(top, filepath.Join(m.Source, strings.TrimPrefix(path, m.Destination)), m.Source, exists,
		"on this node", "put it there")
}

// findLackIn returns why users cannot execute a path in a root. The directories above shown do not matter. exists
// reports whether the jail has an interpreter; where names the root, and remedy is what to do about a missing file.
func findLackIn(root int, path, shown string, exists func(string) bool,
	where, remedy string) programLack {
	fd, err := rootpath.OpenBeneath(root, path, rootpath.InRoot)
	switch {
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ENOTDIR):
		return programLack{why: "is missing " + where, remedy: remedy, isMissing: true}
	case err != nil:
		return programLack{} // of the storage, which says nothing about users: root_squash, for example
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	onNode := resolveInRoot(root, path)
	if unix.Fstat(fd, &st) == nil && st.Mode&0o111 == 0 {
		return programLack{why: "is not executable " + where, remedy: "run: chmod a+rx " + oneline.ShellWord(onNode)}
	}
	list := findClosed(root, path, unix.X_OK|unix.R_OK)
	list = slices.DeleteFunc(list, func(one closed) bool { return !config.Under(one.name, shown) })
	if len(list) > 0 && !admitNobody(list) {
		return programLack{why: "can be executed only by users whom its group or an ACL admits " + where,
			remedy: forAll + "run: " + describeModes(list, "rx"), admitsSome: true}
	}
	if len(list) > 0 {
		return programLack{why: "cannot be executed by users " + where, remedy: "run: " + describeModes(list, "rx")}
	}
	f, err := rootpath.OpenFileInRoot(root, path)
	if err != nil {
		return programLack{}
	}
	defer f.Close()
	return findScriptLack(f, onNode, exists)
}

// findMountOf returns the last mount at or above a path, or nil.
func findMountOf(mounts []specs.Mount, path string) (found *specs.Mount) {
	for i, m := range mounts {
		if m.Destination != "/" && config.Under(path, m.Destination) {
			found = &mounts[i]
		}
	}
	return found
}
