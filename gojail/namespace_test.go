// SPDX-License-Identifier: Apache-2.0

package gojail

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/moby/sys/mountinfo"
	"github.com/stretchr/testify/require"
)

// A test that mounts starts this test binary again in a mount namespace of its
// own. The child does one of these, named in childVariable, and prints what it saw.
const childVariable = "GOJAIL_TEST_CHILD"

var childActions = map[string]func(input string) (any, error){}

func init() {
	// As the first thing that a test needs, not from TestMain: other tests of the package need no child.
	name := os.Getenv(childVariable)
	if name == "" {
		return
	}
	childMain = func() {
		result, err := childActions[name](os.Getenv("GOJAIL_TEST_INPUT"))
		reply := childReply{Result: result}
		if err != nil {
			reply.Error = err.Error()
		}
		json.NewEncoder(os.Stdout).Encode(reply)
		os.Exit(0)
	}
}

var childMain func()

// TestChild is where a child begins its work: after all of the package's init functions.
func TestChild(t *testing.T) {
	if childMain != nil {
		childMain()
	}
}

type childReply struct {
	Result any
	Error  string
}

// inNamespace runs an action in a private mount namespace; its result is decoded into result.
func inNamespace(t *testing.T, action string, input, result any) error {
	t.Helper()
	text, err := json.Marshal(input)
	require.NoError(t, err)
	return inNamespaceText(t, action, string(text), result)
}

func inNamespaceText(t *testing.T, action, input string, result any) error {
	t.Helper()
	needRoot(t)
	cmd := exec.Command("/proc/self/exe", "-test.run=^TestChild$")
	cmd.Env = append(os.Environ(), childVariable+"="+action, "GOJAIL_TEST_INPUT="+input)
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	require.NoError(t, cmd.Run(), stderr.String())
	reply := childReply{Result: result}
	require.NoError(t, json.Unmarshal(stdout.Bytes(), &reply), stdout.String()+stderr.String())
	if reply.Error != "" {
		return fmt.Errorf("%s", reply.Error)
	}
	return nil
}

func init() {
	childActions["zygote"] = func(root string) (any, error) {
		if err := Apply(smallView(root), "small"); err != nil {
			return nil, err
		}
		fmt.Println("ready")
		io.Copy(io.Discard, os.Stdin)
		return nil, nil
	}
}

// startZygote keeps a process in an assembled jail until the test ends.
func startZygote(t *testing.T, root string) int {
	t.Helper()
	needRoot(t)
	cmd := exec.Command("/proc/self/exe", "-test.run=^TestChild$")
	cmd.Env = append(os.Environ(), childVariable+"=zygote", "GOJAIL_TEST_INPUT="+root)
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
	stdin, err := cmd.StdinPipe()
	require.NoError(t, err)
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { stdin.Close(); cmd.Wait() })
	line, _ := bufio.NewReader(stdout).ReadString('\n')
	require.Equal(t, "ready\n", line)
	return cmd.Process.Pid
}

func needRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
}

// noLeaks fails the test when it leaves descriptors or mounts behind.
func noLeaks(t *testing.T) {
	t.Helper()
	fds, mounts := openFiles(), ownMounts(t)
	t.Cleanup(func() {
		require.Equal(t, fds, openFiles(), "descriptors left open")
		require.Equal(t, mounts, ownMounts(t), "mounts left behind")
	})
}

// openFiles lists what this process has open, less what the runtime opens for itself.
func openFiles() []string {
	entries, _ := os.ReadDir("/proc/self/fd")
	var out []string
	for _, e := range entries {
		target, err := os.Readlink("/proc/self/fd/" + e.Name())
		// The runtime polls, and watches the cgroup's CPU limit, by whatever path it has in this view.
		if err != nil || strings.HasPrefix(target, "anon_inode:[event") || strings.HasPrefix(target, "/proc/") || strings.Contains(target, "/cpu.") {
			continue
		}
		out = append(out, e.Name()+" "+target)
	}
	return out
}

// ownMounts lists the mounts below the test's own directories; others come and go.
func ownMounts(t *testing.T) []string {
	t.Helper()
	infos, err := mountinfo.GetMounts(nil)
	require.NoError(t, err)
	var out []string
	for _, i := range infos {
		if strings.Contains(i.Mountpoint, "/"+t.Name()) {
			out = append(out, i.Mountpoint)
		}
	}
	return out
}

// smallTree is a directory that can be a jail's root: it has what the standard
// mounts of these tests need, and nothing to run.
func smallTree(t *testing.T) string {
	t.Helper()
	root := filepath.Join(t.TempDir(), "root")
	for _, dir := range []string{"proc", "sys", "dev", "run", "tmp", "etc", "data", "scratch"} {
		require.NoError(t, os.MkdirAll(filepath.Join(root, dir), 0o755))
	}
	writeFile(t, filepath.Join(root, "etc/hostname"), "jail\n")
	writeFile(t, filepath.Join(root, "etc/resolv.conf"), "")
	return root
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
}

func symlink(t *testing.T, target, path string) {
	t.Helper()
	require.NoError(t, os.Symlink(target, path))
}

// mountOf finds the mount at path in mountinfo lines, the topmost one.
func mountOf(mounts []*mountinfo.Info, path string) *mountinfo.Info {
	var found *mountinfo.Info
	for _, m := range mounts {
		if m.Mountpoint == path {
			found = m
		}
	}
	return found
}
