// SPDX-License-Identifier: Apache-2.0

package unpack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"

	"github.com/gojail/gojail/internal/output"
)

// Tree is a directory that child processes fill and list.
type Tree struct {
	Dir string
	// Self is the command line that calls Child with its last argument, which is appended. It starts the caller's own
	// program.
	Self []string
}

// UnpackLayer unpacks a plain tar stream over the content of the tree, and reads the stream to its end, because a
// digest covers all of it. The limits are those of the whole tree; before is what lower layers have used of them.
func (t Tree) UnpackLayer(ctx context.Context, stream io.Reader, policy Policy, limits Limits, before Result) (Result,
	error) {
	if err := policy.Check(); err != nil {
		return Result{}, err
	}
	source := &sourceReader{r: stream}
	result, err := t.runChild(ctx, request{Action: actionLayer, Policy: policy, Limits: limits, Before: before}, source,
		nil)
	if source.err != nil { // the child saw only that the stream ended early
		return result, source.err
	}
	return result, err
}

// Strip applies a policy to a tree that another program filled, and counts its files.
func (t Tree) Strip(ctx context.Context, policy Policy) (Result, error) {
	if err := policy.Check(); err != nil {
		return Result{}, err
	}
	return t.runChild(ctx, request{Action: actionStrip, Policy: policy}, nil, nil)
}

// Mark writes the version file at the root of the tree, makes the root root's with mode 0755, and
// returns when the tree is on the disk.
func (t Tree) Mark(ctx context.Context, version string) error {
	_, err := t.runChild(ctx, request{Action: actionMark, Version: version}, nil, nil)
	return err
}

// List writes the list of the tree's files to w, for Compare.
func (t Tree) List(ctx context.Context, w io.Writer) error {
	_, err := t.runChild(ctx, request{Action: actionList}, nil, w)
	return err
}

// sourceReader remembers the error with which a stream ended.
type sourceReader struct {
	r   io.Reader
	err error
}

func (s *sourceReader) Read(p []byte) (int, error) {
	n, err := s.r.Read(p)
	if err != nil && err != io.EOF {
		s.err = err
	}
	return n, err
}

// runChild runs one child and returns its answer.
func (t Tree) runChild(ctx context.Context, r request, in io.Reader, out io.Writer) (Result, error) {
	r.Target = t.Dir
	text, err := json.Marshal(r)
	if err != nil {
		return Result{}, err
	}
	reader, writer, err := os.Pipe()
	if err != nil {
		return Result{}, fmt.Errorf("cannot create a pipe: %w", err)
	}
	defer reader.Close()
	// The slice has no capacity beyond its length, so that append does not write into the caller's.
	cmd := exec.CommandContext(ctx, t.Self[0], append(t.Self[1:len(t.Self):len(t.Self)], string(text))...)
	stderr := &output.Head{Most: 4 << 10}
	cmd.Dir, cmd.SysProcAttr = "/", childAttributes()
	cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = in, out, stderr, []*os.File{writer}
	err = cmd.Start()
	writer.Close()                      // so that the answer ends when the child does
	if ctx.Err() != nil && err != nil { // it was not started
		return Result{}, context.Cause(ctx)
	}
	if err != nil {
		return Result{}, fmt.Errorf("cannot start a process in its own namespaces: %w", err)
	}
	// The answer is read before the child ends: a child that fills the pipe would wait for a reader.
	answerText, _ := io.ReadAll(io.LimitReader(reader, 64<<10))
	err = cmd.Wait()
	var a answer
	switch decodeErr := json.Unmarshal(answerText, &a); {
	case ctx.Err() != nil:
		return a.Result, context.Cause(ctx)
	case decodeErr != nil:
		return a.Result, fmt.Errorf("the process that unpacks ended early: %w: %s", errors.Join(err, decodeErr),
			stderr.Bytes())
	case a.Error != "":
		return a.Result, errors.New(a.Error)
	}
	return a.Result, err
}
