// SPDX-License-Identifier: Apache-2.0

package build

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"syscall"

	"github.com/gojail/gojail/internal/oneline"
	"github.com/gojail/gojail/internal/output"
)

// runTool runs a program that ends with this process. dir is its working directory; "" stands for that of this process.
// what is the purpose of the program, for errors: "cannot copy the version: cp: ...".
func runTool(ctx context.Context, what, dir string, args ...string) error {
	printed := &output.Head{Most: 2 << 10}
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, printed, printed
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	switch err := cmd.Run(); {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, exec.ErrNotFound):
		return fmt.Errorf("cannot %s: %w; install the package that has it", what, err)
	case err != nil:
		return fmt.Errorf("cannot %s: %s: %w: %s", what, args[0], err, oneline.Text(string(printed.Bytes())))
	}
	return nil
}
