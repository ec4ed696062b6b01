// SPDX-License-Identifier: Apache-2.0

package mount

import (
	"encoding/json"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/moby/sys/mountinfo"
	specs "github.com/opencontainers/runtime-spec/specs-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/gojail/config"
	"github.com/gojail/gojail/gojail/mount/mounttest"
	"github.com/gojail/gojail/gojail/plan"
	"github.com/gojail/gojail/internal/nstest"
	"github.com/gojail/gojail/internal/oneline"
)

func init() { nstest.Actions["apply"] = applyChild }

// applied is what the child of a test sees in the view that it assembled.
type applied struct {
	Mounts    []*mountinfo.Info
	Files     map[string]seen
	Cwd       string
	OpenFiles int // more than before

}

type seen struct {
	Mode   fs.FileMode
	Text   string // first bytes of a file, names of a directory, target of a nstest.Symlink
	Writes string // "" or the error when something is made there
	UID    uint32
	Rdev   uint64
}

type applyInput struct {
	View *plan.View
	Look []string
}

func applyChild(input string) (any, error) {
	var in applyInput
	if err := json.Unmarshal([]byte(input), &in); err != nil {
		return nil, err
	}
	before := nstest.OpenFiles()
	if err := attachAndApply(in.View); err != nil {
		return nil, err
	}
	out := applied{Files: map[string]seen{}}
	out.OpenFiles = len(nstest.OpenFiles()) - len(before)
	out.Cwd, _ = os.Getwd()
	out.Mounts, _ = mountinfo.GetMounts(nil)
	for _, path := range in.Look {
		out.Files[path] = readSeen(path)
	}
	return out, nil
}

// attachAndApply attaches the root of a view and assembles it, as a template does in two processes.
func attachAndApply(v *plan.View) error {
	root, err := AttachRoot(&config.Jail{Name: "small", Root: v.Spec.Root.Path})
	if err != nil {
		return err
	}
	unix.Close(root)
	if root, err = OpenAttachedRoot(); err != nil {
		return err
	}
	defer unix.Close(root)
	return Apply(v, "small", root)
}

func readSeen(path string) seen {
	info, err := os.Lstat(path)
	if err != nil {
		return seen{Text: err.Error()}
	}
	st := info.Sys().(*unixStat)
	s := seen{Mode: info.Mode(), UID: st.Uid, Rdev: st.Rdev}
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		s.Text, _ = os.Readlink(path)
	case info.IsDir():
		names, err := os.ReadDir(path)
		for _, n := range names {
			s.Text += n.Name() + " "
		}
		if err != nil {
			s.Text = err.Error()
		}
		f, err := os.CreateTemp(path, "w")
		if err != nil {
			s.Writes = oneline.Errno(err).Error()
		} else {
			f.Close()
			os.Remove(f.Name())
		}
	case info.Mode().IsRegular() || info.Mode()&fs.ModeCharDevice != 0:
		s.Text = readStart(path)
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			s.Writes = oneline.Errno(err).Error()
		} else {
			f.Close()
		}
	}
	return s
}

// readStart returns the first 100 bytes of a file, or why it cannot be read.
func readStart(path string) string {
	f, err := os.Open(path)
	if err != nil {
		return err.Error()
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, 100))
	if err != nil {
		return err.Error()
	}
	return string(data)
}

func applyInChild(t *testing.T, v *plan.View, paths ...string) (applied, error) {
	t.Helper()
	var out applied
	err := nstest.Run(t, "apply", applyInput{View: v, Look: paths}, &out)
	return out, err
}

func TestApplyAssemblesTheJail(t *testing.T) {
	nstest.NoLeaks(t)
	root := mounttest.SmallTree(t)
	out, err := applyInChild(t, mounttest.SmallView(root), "/", "/etc/hostname", "/etc/resolv.conf", "/run", "/run/a/b/file",
		"/dev/null", "/dev/sub/zero", "/dev/fd", "/dev/dri", "/proc/version", "/proc/tty", "/proc/sys/kernel/hostname", "/proc/uptime", "/sys")
	require.NoError(t, err)
	assert.Equal(t, "by-path ", out.Files["/dev/dri"].Text)
	assert.Equal(t, "for ever\n", out.Files["/proc/uptime"].Text)
	assert.NotEmpty(t, out.Files["/proc/uptime"].Writes)

	assert.Len(t, out.Mounts, 13, "nothing of the host is left")
	top := nstest.MountOf(out.Mounts, "/")
	require.NotNil(t, top)
	assert.Equal(t, "/", out.Cwd)
	assert.Zero(t, out.OpenFiles, "descriptors left open")
	assert.Equal(t, "jail\n", out.Files["/etc/hostname"].Text)
	assert.Empty(t, out.Files["/"].Writes)
	assert.Equal(t, "data dev etc proc run scratch sys tmp ", out.Files["/"].Text)

	for path, want := range map[string]string{
		"/":                "rw,nosuid,nodev",
		"/proc":            "rw,nosuid,nodev,noexec",
		"/sys":             "ro,nosuid,nodev,noexec",
		"/dev":             "rw,nosuid,noexec",
		"/dev/pts":         "rw,nosuid,noexec",
		"/dev/mqueue":      "rw,nosuid,nodev,noexec",
		"/run":             "ro,nosuid,nodev",
		"/run/a/b/file":    "ro",
		"/etc/resolv.conf": "ro,nosuid,nodev,noexec",
		"/proc/version":    "ro,nosuid,noexec",
		"/proc/tty":        "ro,nosuid,nodev,noexec",
		"/proc/sys":        "ro,nosuid,nodev,noexec",
	} {
		m := nstest.MountOf(out.Mounts, path)
		if assert.NotNil(t, m, path) {
			assert.Equal(t, want, strings.Replace(m.Options, ",relatime", "", 1), path)
			assert.Empty(t, m.Optional, "%s is private", path)
		}
	}

	passwd := readStart("/etc/passwd")
	assert.Equal(t, passwd, out.Files["/run/a/b/file"].Text)
	assert.Equal(t, passwd, out.Files["/etc/resolv.conf"].Text)
	assert.Equal(t, "read-only file system", out.Files["/etc/resolv.conf"].Writes)
	assert.Equal(t, "read-only file system", out.Files["/run"].Writes)
	assert.Equal(t, fs.ModeDevice|fs.ModeCharDevice|0o666, out.Files["/dev/null"].Mode)
	assert.Equal(t, uint64(unix.Mkdev(1, 5)), out.Files["/dev/sub/zero"].Rdev)
	assert.Equal(t, "/proc/self/fd", out.Files["/dev/fd"].Text)
	assert.Equal(t, uint64(unix.Mkdev(1, 3)), out.Files["/proc/version"].Rdev, "masked by /dev/null")
	assert.Empty(t, out.Files["/proc/version"].Text)
	assert.Empty(t, out.Files["/proc/tty"].Text, "masked by an empty directory")
	assert.Equal(t, "read-only file system", out.Files["/proc/sys/kernel/hostname"].Writes)

	for _, dir := range []string{"proc", "sys", "dev", "run"} {
		left, err := os.ReadDir(filepath.Join(root, dir))
		require.NoError(t, err)
		assert.Empty(t, left, "nothing is made on shared storage")
	}
}

func TestApplyReadonlyRoot(t *testing.T) {
	nstest.NoLeaks(t)
	v := mounttest.SmallView(mounttest.SmallTree(t))
	v.Spec.Root.Readonly = true
	out, err := applyInChild(t, v, "/", "/etc", "/dev")
	require.NoError(t, err)
	assert.Equal(t, "read-only file system", out.Files["/"].Writes)
	assert.Equal(t, "read-only file system", out.Files["/etc"].Writes)
	assert.Empty(t, out.Files["/dev"].Writes)
}

func TestApplyTmpfsRoot(t *testing.T) {
	nstest.NoLeaks(t)
	root := mounttest.SmallTree(t)
	v := &plan.View{
		TmpfsRoot: true,
		Spec: &specs.Spec{Root: &specs.Root{Path: root}, Mounts: []specs.Mount{
			{Destination: "/usr", Type: "bind", Source: "/usr", Options: []string{"rbind"}},
			{Destination: "/proc", Type: "bind", Source: "/proc", Options: []string{"rbind"}},
			{Destination: "/sys", Type: "bind", Source: "/sys", Options: []string{"rbind"}},
			{Destination: "/data", Type: "bind", Source: root + "/data", Options: []string{"nosuid", "nodev"}},
		}},
		Links: []plan.Link{{Path: "/bin", Target: "usr/bin"}},
	}
	out, err := applyInChild(t, v, "/", "/bin", "/data", "/usr/bin/env")
	require.NoError(t, err)
	assert.Equal(t, "bin data proc sys usr ", out.Files["/"].Text)
	assert.Equal(t, "read-only file system", out.Files["/"].Writes)
	assert.Equal(t, os.FileMode(0o755), out.Files["/"].Mode.Perm())
	assert.Equal(t, "usr/bin", out.Files["/bin"].Text)
	assert.Empty(t, out.Files["/data"].Writes)
	assert.NotZero(t, out.Files["/usr/bin/env"].Mode)
}

// A source below the jail's root, or below another mount's target, is the host's.
func TestApplySourcesAreTheHosts(t *testing.T) {
	nstest.NoLeaks(t)
	root := mounttest.SmallTree(t)
	nstest.WriteFile(t, filepath.Join(root, "data/marker"), "from the root")
	v := mounttest.SmallView(root)
	v.RootOptions = append(v.RootOptions, "ro")
	v.Spec.Mounts = append(v.Spec.Mounts,
		specs.Mount{Destination: "/scratch", Type: "bind", Source: root + "/data"},
		specs.Mount{Destination: "/data", Type: "tmpfs", Options: []string{"size=4k"}},
		specs.Mount{Destination: "/tmp", Type: "bind", Source: root + "/data"})
	out, err := applyInChild(t, v, "/scratch/marker", "/tmp/marker", "/scratch", "/data")
	require.NoError(t, err)
	assert.Equal(t, "from the root", out.Files["/scratch/marker"].Text)
	assert.Equal(t, "from the root", out.Files["/tmp/marker"].Text)
	assert.Empty(t, out.Files["/scratch"].Writes, "the options of the root are the root's")
	assert.Empty(t, out.Files["/data"].Text)
}

// Who can write in the jail must not choose what of the host is mounted.
func TestApplySourcesInTheRootStayThere(t *testing.T) {
	nstest.NoLeaks(t)
	root, outside := mounttest.SmallTree(t), t.TempDir()
	require.NoError(t, os.Mkdir(outside+"/secret", 0o755))
	nstest.Symlink(t, outside, filepath.Join(root, "trap"))
	v := mounttest.SmallView(root)
	v.Spec.Mounts = append(v.Spec.Mounts, specs.Mount{Destination: "/data", Type: "bind", Source: root + "/trap/secret"})
	_, err := applyInChild(t, v)
	assert.EqualError(t, err, "jail small: mount source "+root+"/trap/secret (for /data) does not exist on this node")
}

func TestApplyRefusesRoots(t *testing.T) {
	nstest.NoLeaks(t)
	dir := t.TempDir()
	nstest.WriteFile(t, dir+"/file", "")
	require.NoError(t, os.Mkdir(dir+"/empty", 0o755))
	for path, want := range map[string]string{
		dir + "/absent": "jail root " + dir + "/absent does not exist",
		dir + "/file":   "jail root " + dir + "/file is not a directory, nor an image (squashfs 4.0 or EROFS)",
		dir + "/empty":  "jail root " + dir + "/empty is empty: is its storage mounted?",
	} {
		_, err := applyInChild(t, mounttest.SmallView(path))
		assert.EqualError(t, err, want)
	}
}

func TestApplyMissingTarget(t *testing.T) {
	nstest.NoLeaks(t)
	for _, path := range []string{"/opt", "/opt/deep/er", "/data/new"} {
		root := mounttest.SmallTree(t)
		v := mounttest.SmallView(root)
		v.Spec.Mounts = append(v.Spec.Mounts, specs.Mount{Destination: path, Type: "bind", Source: "/usr"})
		_, err := applyInChild(t, v)
		assert.EqualError(t, err, "jail small: mount target "+path+" is missing in "+root+"; create it once with: gojail init small")
		assert.NoFileExists(t, root+path)
	}
}

func TestApplyErrorsNameEverything(t *testing.T) {
	nstest.NoLeaks(t)
	root := mounttest.SmallTree(t)
	for _, c := range []struct {
		mount specs.Mount
		want  string
	}{
		{specs.Mount{Destination: "/data", Type: "bind", Source: "/no/such"}, "jail small: mount source /no/such (for /data) does not exist on this node"},
		{specs.Mount{Destination: "/data", Type: "bind", Source: "relative"}, `jail small: mount /data: source "relative" is not an absolute path`},
		{specs.Mount{Destination: "/data", Type: "bind", Source: "/usr", Options: []string{"rw", "size=1"}}, `jail small: mount /data: "size=1" is not an option of a bind mount`},
		{specs.Mount{Destination: "/data", Type: "bind", Source: "/usr", Options: []string{"rshared"}}, `jail small: mount /data: option "rshared" is not supported: mounts of a jail are always private`},
		{specs.Mount{Destination: "/data", Type: "ext4", Source: "/dev/sda"}, `jail small: mount /data: type "ext4" is not one of bind, proc, sysfs, tmpfs, devpts, mqueue, overlay`},
		{specs.Mount{Destination: "/data", Type: "tmpfs", Options: []string{"nosuid", "size=lots"}}, "jail small: fsconfig tmpfs size=lots on /data (nosuid,size=lots): invalid argument: tmpfs: Bad value for 'size'"},
		{specs.Mount{Destination: "/data", Type: "tmpfs", Options: []string{"colour=red"}}, "jail small: fsconfig tmpfs colour=red on /data (colour=red): invalid argument: tmpfs: Unknown parameter 'colour'"},
		{specs.Mount{Destination: "/data", Type: "bind", Source: "/etc/passwd"}, "jail small: mount target /data in " + root + " is a directory, but its source /etc/passwd is a file"},
		{specs.Mount{Destination: "/etc/hostname", Type: "bind", Source: "/usr"}, "jail small: mount target /etc/hostname in " + root + " is a file, but its source /usr is a directory"},
		{specs.Mount{Destination: "/etc/hostname/x", Type: "bind", Source: "/usr"}, "jail small: mount target /etc/hostname/x in " + root + " lies below a file"},
		{specs.Mount{Destination: "/", Type: "bind", Source: "/usr"}, "jail small: mount target / in " + root + " is the root itself"},
		{specs.Mount{Destination: "/dev/../x", Type: "bind", Source: "/usr"}, `jail small: mount target "/dev/../x" is not a clean absolute path below /`},
	} {
		v := mounttest.SmallView(root)
		v.Spec.Mounts = append(v.Spec.Mounts, c.mount)
		_, err := applyInChild(t, v)
		assert.EqualError(t, err, c.want)
	}
}

func TestApplyOverlay(t *testing.T) {
	nstest.NoLeaks(t)
	root := mounttest.SmallTree(t)
	dir := t.TempDir()
	for _, name := range []string{"upper", "work"} {
		require.NoError(t, os.Mkdir(filepath.Join(dir, name), 0o755))
	}
	overlayOn := func(layers string) *plan.View {
		v := mounttest.SmallView(root)
		v.Spec.Mounts = append(v.Spec.Mounts, specs.Mount{Destination: "/data", Type: "overlay", Source: "overlay",
			Options: []string{"lowerdir=" + layers, "upperdir=" + dir + "/upper", "workdir=" + dir + "/work"}})
		return v
	}
	long, empty := filepath.Join(dir, strings.Repeat("x", 180), "lower"), filepath.Join(dir, strings.Repeat("y", 180))
	require.NoError(t, os.MkdirAll(long, 0o755))
	require.NoError(t, os.MkdirAll(empty, 0o755))
	nstest.WriteFile(t, filepath.Join(long, "lower-file"), "")
	out, err := applyInChild(t, overlayOn(long+":"+empty+":/usr"), "/data")
	if err != nil && strings.Contains(err.Error(), "lowerdir of more than 255 bytes requires Linux 6.8 or later") {
		t.Skip("needs Linux 6.8: " + err.Error())
	}
	if err != nil && strings.Contains(err.Error(), "upper fs") {
		t.Skip("the temporary directory cannot be an upper layer: " + err.Error())
	}
	require.NoError(t, err)
	assert.Contains(t, out.Files["/data"].Text, "lower-file ")
	assert.Contains(t, out.Files["/data"].Text, "bin ")
	assert.Empty(t, out.Files["/data"].Writes)
}
