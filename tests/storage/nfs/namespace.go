// SPDX-License-Identifier: Apache-2.0

package nfs

import (
	"bufio"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// commandTimeout is how long one command may take on an emulated processor.
const commandTimeout = 5 * time.Minute

// namespace is a network, a mount and a UTS namespace, held by a process that sleeps.
type namespace struct{ holder *exec.Cmd }

// newNamespace runs a script in new namespaces, which stay until close.
func newNamespace(script string, args ...string) (namespace, error) {
	holder := exec.Command("/bin/sh", append([]string{"-euc", "mount --make-rprivate /\nip link set lo up\n" + script + "\necho ready; exec sleep infinity", "sh"}, args...)...)
	holder.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNET | unix.CLONE_NEWNS | unix.CLONE_NEWUTS}
	var errs strings.Builder
	holder.Stderr = &errs
	out, err := holder.StdoutPipe()
	if err != nil {
		return namespace{}, err
	}
	if err := holder.Start(); err != nil {
		return namespace{}, fmt.Errorf("nfs: make namespaces: %w", err)
	}
	if line, _ := bufio.NewReader(out).ReadString('\n'); line != "ready\n" {
		holder.Process.Kill()
		holder.Wait()
		return namespace{}, fmt.Errorf("nfs: prepare namespaces: %s", strings.TrimSpace(errs.String()))
	}
	return namespace{holder}, nil
}

func (n namespace) holderPid() string { return strconv.Itoa(n.holder.Process.Pid) }

// runInside runs a command in the namespaces.
func (n namespace) runInside(args ...string) error {
	_, err := runCommand(exec.Command("nsenter", append([]string{"--target", n.holderPid(), "--net", "--mount", "--uts", "--"}, args...)...))
	return err
}

func (n namespace) close() {
	n.holder.Process.Kill()
	n.holder.Wait()
}

// runCommand runs a command for at most patience; the error has what it printed.
func runCommand(cmd *exec.Cmd) (string, error) {
	var out, errs strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Start(); err != nil {
		return "", err
	}
	late := time.AfterFunc(commandTimeout, func() { cmd.Process.Kill() })
	err := cmd.Wait()
	if !late.Stop() {
		err = fmt.Errorf("no end after %v", commandTimeout)
	}
	if err != nil {
		return "", fmt.Errorf("nfs: %s: %w: %s", strings.Join(cmd.Args, " "), err, strings.TrimSpace(out.String()+errs.String()))
	}
	return out.String(), nil
}
