// SPDX-License-Identifier: Apache-2.0

package source

import (
	"fmt"
	"io"
	"os/exec"
	"syscall"
	"time"

	"github.com/gojail/gojail/internal/oneline"
	"github.com/gojail/gojail/internal/output"
)

// processReader is the output of a program. Its end is an error if the program failed.
type processReader struct {
	io.Reader
	cmd    *exec.Cmd
	what   string
	stderr *output.Head
	ended  bool
	err    error // error of the last read
}

// startReader starts a program and returns its output. what is the purpose of the program, for errors: "cannot read the
// directory: tar: ...".
func startReader(cmd *exec.Cmd, what string) (io.ReadCloser, error) {
	p := &processReader{cmd: cmd, what: what, stderr: &output.Head{Most: 2 << 10}}
	cmd.Stderr, cmd.WaitDelay = p.stderr, endPatience
	if cmd.SysProcAttr == nil { // not confined: it may have files to clean up
		cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM} // on SIGTERM, mmdebstrap removes its tree
		cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	}
	pipe, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return nil, fmt.Errorf("cannot %s: %w", what, err)
	}
	p.Reader = pipe
	return p, nil
}

func (p *processReader) Read(buffer []byte) (int, error) {
	if p.err != nil {
		return 0, p.err
	}
	n, err := p.Reader.Read(buffer)
	if err == io.EOF {
		p.ended = true
		if waitErr := p.cmd.Wait(); waitErr != nil {
			err = fmt.Errorf("cannot %s: %w: %s", p.what, waitErr, oneline.Text(string(p.stderr.Bytes())))
		}
	}
	p.err = err
	return n, err
}

// endPatience is the time that a program has to clean up after SIGTERM.
const endPatience = 10 * time.Second

// Close ends the program if it is still running.
func (p *processReader) Close() error {
	if p.ended {
		return nil
	}
	p.ended = true
	p.cmd.Cancel()
	kill := time.AfterFunc(endPatience, func() { p.cmd.Process.Kill() })
	defer kill.Stop()
	p.cmd.Wait()
	return nil
}
