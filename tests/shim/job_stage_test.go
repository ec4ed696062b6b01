// SPDX-License-Identifier: Apache-2.0

package shim

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestJobStageHasOwnMounts exchanges directories of a jail between the assembly of a sandbox and that of its stage, or while a spare has begun both.
// The stage has the job's own /tmp, /dev/shm and /dev/pts, the same as the jail, or is refused with a line.
func TestJobStageHasOwnMounts(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: mounts")
	}
	program := filepath.Join(t.TempDir(), "job_stage")
	args := []string{"-D_GNU_SOURCE", "-g", "-Wall", "-Wextra", "-Werror", "-I../../spank", "-I../../include", "-o", program, "testdata/job_stage.c"}
	for _, name := range []string{"assemble", "job_stage", "remount", "writable", "accounts", "mountinfo"} {
		args = append(args, "../../spank/launcher/"+name+".c")
	}
	for _, name := range []string{"path", "fd", "fault", "printable"} {
		args = append(args, "../../spank/common/"+name+".c")
	}
	out, err := exec.Command("gcc", args...).CombinedOutput()
	require.NoError(t, err, "%s", out)
	const refused = " of the jail is not what was mounted there; did somebody rename it in the jail's root? Try again"
	for _, row := range []struct{ name, script, want string }{
		{"same", "true", "job shm - "},
		{"other directory", "mv tmp tmp.old; mv other tmp", "/tmp" + refused},
		{"link to another", "mv tmp tmp.old; ln -s other tmp", "/tmp" + refused},
		{"link to itself", "mv tmp tmp.old; ln -s tmp.old tmp", "job shm - "},
		{"link outward", "mv tmp tmp.old; ln -s ../../../../../../../etc tmp", "/tmp of the jail is not what was mounted there: No such file or directory; did somebody"},
		{"link to shm", "mv tmp tmp.old; ln -s dev/shm tmp", "shm shm - "},
		{"link to a mount of all jobs", "mv tmp tmp.old; ln -s dev tmp", "/tmp" + refused},
		{"gone", "mv tmp tmp.old", "/tmp of the jail is not what was mounted there: No such file or directory; did somebody"},
		{"removed", "rm -r tmp; mkdir tmp; echo -n jail >tmp/whose", "/tmp" + refused},
		{"all of dev", "umount dev; mkdir -p dev.new/shm dev.new/pts; mv dev dev.old; mv dev.new dev", "/dev/shm" + refused},
		{"shm", "mv dev/shm dev/shm.old; mkdir dev/shm", "/dev/shm" + refused},
		{"pts", "mv dev/pts dev/pts.old; mkdir dev/pts", "/dev/pts" + refused},
		{"var/tmp to tmp", "rm -r var/tmp; ln -s /tmp var/tmp", "job shm job "},
		{"var/tmp to another", "rm -r var/tmp; ln -s /other var/tmp", "job shm - "},
	} {
		t.Run(row.name, func(t *testing.T) {
			out, err := exec.Command(program, t.TempDir(), row.script).CombinedOutput()
			require.NoError(t, err, "%s", out)
			assert.True(t, strings.HasPrefix(string(out), row.want), "%s", out)
		})
	}
	for _, row := range []struct{ name, script, want string }{
		{"same", "true", "job shm - "},
		{"other directory", "mv tmp tmp.old; mv other tmp", "job shm - "},
		{"link to another", "mv tmp tmp.old; ln -s other tmp", "job shm - "},
		{"link to shm", "mv tmp tmp.old; ln -s dev/shm tmp", "shm shm - "},
		{"link to a mount of all jobs", "mv tmp tmp.old; ln -s dev tmp", "/dev/shm of the jail is not what was mounted there: No such file or directory; did somebody"},
		{"link to devpts", "mv tmp tmp.old; ln -s dev/pts tmp", "job shm - "},
		{"link to run", "mv tmp tmp.old; ln -s run tmp", "job shm - "},
		{"gone", "mv tmp tmp.old", "cannot mount a private /tmp in the jail: No such file or directory"},
		{"all of dev", "umount dev; mkdir -p dev.new/shm dev.new/pts; mv dev dev.old; mv dev.new dev", "/dev of the jail is not what was mounted there; did somebody"},
		{"dev and run", "umount dev run; mv dev dev.new; mv run dev; mv dev.new run", "of the jail is not"},
		{"var/tmp to tmp", "rm -r var/tmp; ln -s /tmp var/tmp", "job shm job "},
	} {
		t.Run("spare/"+row.name, func(t *testing.T) {
			out, err := exec.Command(program, t.TempDir(), row.script, "spare").CombinedOutput()
			require.NoError(t, err, "%s", out)
			assert.Contains(t, string(out), row.want)
		})
	}
}
