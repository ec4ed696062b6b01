// SPDX-License-Identifier: Apache-2.0

// Command agent runs the scripts of tests/site in one of its machines: site-agent.service.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/gojail/gojail/tests/site/wire"
)

func main() {
	fmt.Fprintln(os.Stderr, "agent:", serve("/dev/virtio-ports/"+wire.Port))
	os.Exit(1)
}

// serve runs the requests of the port, until it fails.
func serve(path string) error {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return err
	}
	port, err := openPort(path)
	if err != nil {
		return err
	}
	var writing sync.Mutex
	reply := func(r wire.Reply) {
		r.Boot = strings.TrimSpace(string(boot))
		line, _ := json.Marshal(r) // strings and numbers
		writing.Lock()
		defer writing.Unlock()
		port.Write(append(line, '\n')) // whoever asked notices
	}
	reply(wire.Reply{})
	for in := bufio.NewReader(port); ; {
		line, err := in.ReadBytes('\n')
		if err == io.EOF { // nobody is at the other end
			time.Sleep(100 * time.Millisecond)
			continue
		}
		if err != nil {
			return err
		}
		var r wire.Request
		if err := json.Unmarshal(line, &r); err != nil {
			return fmt.Errorf("a request: %w", err)
		}
		go func() { reply(run(r)) }()
	}
}

// openPort opens the port, once udev has named it.
func openPort(path string) (port *os.File, err error) {
	for end := time.Now().Add(time.Minute); ; time.Sleep(100 * time.Millisecond) {
		if port, err = os.OpenFile(path, os.O_RDWR, 0); err == nil || time.Now().After(end) {
			return port, err
		}
	}
}

// run runs a script in a session of its own, which a user has as after su -.
func run(r wire.Request) wire.Reply {
	args := []string{"bash", "-c", r.Script}
	if r.User != "" {
		args = append([]string{"runuser", "-u", r.User, "--", "env", "-C", "/home/" + r.User, "HOME=/home/" + r.User, "USER=" + r.User}, args...)
	}
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root", "LANG=C.UTF-8", "DEBIAN_FRONTEND=noninteractive"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	cmd.WaitDelay = time.Second // what the script has left running holds its output
	err := cmd.Run()
	reply := wire.Reply{ID: r.ID, Stdout: stdout.String(), Stderr: stderr.String()}
	state := cmd.ProcessState
	switch {
	case state == nil:
		reply.Code, reply.Stderr = 127, err.Error()
	case state.ExitCode() >= 0:
		reply.Code = state.ExitCode()
	default:
		reply.Code = 128 + int(state.Sys().(syscall.WaitStatus).Signal())
	}
	return reply
}
