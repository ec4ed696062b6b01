// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/gojail/state"
	"github.com/gojail/gojail/internal/nstest"
	"github.com/gojail/gojail/internal/oneline"
	"github.com/gojail/gojail/internal/rmtree"
)

// image is a file system in a file: how it is made and mounted.
type image struct {
	size  int64
	mkfs  []string
	mount string
}

// images by kind; what follows a blank tells those of a kind apart.
var images = map[string]image{
	"ext4":       {32 << 20, []string{"-q", "-O", "encrypt"}, "loop"},
	"ext4 quota": {32 << 20, []string{"-q", "-O", "quota,project", "-E", "quotatype=prjquota"}, "loop,prjquota"},
	"xfs":        {300 << 20, []string{"-q"}, "loop"},
	"btrfs":      {64 << 20, []string{"-q", "--mixed"}, "loop"}, // so that files alone can fill it
}

func needImage(t *testing.T, kind string) {
	t.Helper()
	nstest.NeedRoot(t)
	kind, _, _ = strings.Cut(kind, " ")
	if _, err := exec.LookPath("mkfs." + kind); err != nil {
		t.Skip("needs mkfs." + kind + ": make deps installs it")
	}
	exec.Command("modprobe", kind).Run()
	known, err := os.ReadFile("/proc/filesystems")
	require.NoError(t, err)
	if !slices.Contains(strings.Fields(string(known)), kind) {
		t.Skip("needs the kernel's " + kind)
	}
}

// needQuota skips where an ext4 with project quotas could not be mounted: kernels are built without them.
func needQuota(t *testing.T, err error) {
	t.Helper()
	if err != nil && strings.HasPrefix(err.Error(), "mount -t ext4 -o loop,prjquota ") {
		t.Skip("needs the kernel's CONFIG_QFMT_V2")
	}
}

// mountImage makes one in dir, and mounts it on dir/scratch. It is gone with the mount namespace.
func mountImage(name, dir string) error {
	i := images[name]
	kind, _, _ := strings.Cut(name, " ")
	if err := nstest.MakePrivate(); err != nil {
		return err
	}
	if err := os.WriteFile(dir+"/image", nil, 0o600); err != nil {
		return err
	}
	if err := os.Truncate(dir+"/image", i.size); err != nil {
		return err
	}
	for _, line := range [][]string{
		append(append([]string{"mkfs." + kind}, i.mkfs...), dir+"/image"),
		{"mount", "-t", kind, "-o", i.mount, dir + "/image", dir + "/scratch"},
	} {
		if out, err := exec.Command(line[0], line[1:]...).CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w: %s", strings.Join(line, " "), err, out)
		}
	}
	return nil
}

// tooDeep to be emptied where it is: something must be moved out.
const tooDeep = 4 * rmtree.MaxTops

// whatUsersDo to the /tmp of a job, so that its end could not remove it.
var whatUsersDo = map[string]func(tmp string) error{
	"fill it": func(tmp string) error {
		for i := range 40 {
			deep := fmt.Sprintf("%s/%d%s", tmp, i, strings.Repeat("/deep", 30))
			if err := os.MkdirAll(deep, 0o755); err != nil {
				return err
			}
		}
		return fill(tmp)
	},
	"give it other projects": func(tmp string) error {
		if err := setProject(tmp+"/..", 5); err != nil { // the administrator's own, for all of the scratch directory
			return err
		}
		for i := range tooDeep {
			tmp += "/deep"
			if err := os.Mkdir(tmp, 0o755); err != nil {
				return err
			}
			if err := setProject(tmp, uint32(100+i)); err != nil {
				return err
			}
		}
		return os.WriteFile(tmp+"/file", nil, 0o600)
	},
	"make subvolumes": func(tmp string) error {
		for range 5 {
			if err := makeSubvolume(tmp, "volume"); err != nil {
				return err
			}
			if err := os.MkdirAll(tmp+"/volume"+strings.Repeat("/deep", tooDeep), 0o755); err != nil {
				return err
			}
			if err := os.WriteFile(tmp+"/volume/deep/deep/file", nil, 0o600); err != nil {
				return err
			}
			tmp += "/volume/deep"
		}
		return nil
	},
	"make subvolumes in subvolumes": func(tmp string) error {
		for range rmtree.MaxTops + 10 {
			if err := makeSubvolume(tmp, "v"); err != nil {
				return err
			}
			if err := os.Mkdir(tmp+"/v/d", 0o755); err != nil {
				return err
			}
			tmp += "/v/d"
		}
		return nil
	},
	"encrypt it": func(tmp string) error {
		tmp += "/secret"
		if err := os.Mkdir(tmp, 0o755); err != nil {
			return err
		}
		lock, err := encrypt(tmp)
		if err != nil {
			return err
		}
		for i := range 3 {
			if err := os.MkdirAll(fmt.Sprintf("%s/%d%s", tmp, i, strings.Repeat("/deep", 3*rmtree.MaxTops)), 0o755); err != nil {
				return err
			}
		}
		return lock()
	},
	"make subvolumes read-only": func(tmp string) error {
		for _, path := range []string{"/one", "/one/two", "/empty"} {
			if err := makeSubvolume(filepath.Dir(tmp+path), filepath.Base(path)); err != nil {
				return err
			}
			if err := os.MkdirAll(tmp+path+"/a/b", 0o755); err != nil {
				return err
			}
		}
		os.RemoveAll(tmp + "/empty/a")
		for _, path := range []string{"/one/two", "/one", "/empty"} {
			if err := subvolumeFlags(tmp+path, subvolumeReadonly); err != nil {
				return err
			}
		}
		return nil
	},
}

// fill writes until there is no room for a byte or a name, with files of all sizes.
func fill(dir string) error {
	for size := 8 << 20; size > 0; size /= 2 {
		data := make([]byte, size)
		for i := range data {
			data[i] = byte(i * i >> 3)
		}
		for n := 0; ; n++ {
			if err := os.WriteFile(fmt.Sprintf("%s/%d-%d", dir, size, n), data, 0o600); err != nil {
				break
			}
		}
	}
	for n := 0; os.Mkdir(fmt.Sprintf("%s/room%d", dir, n), 0o700) == nil; n++ {
	}
	return nil
}

// setProject is what chattr -p NUMBER +P does (ioctl_fsxattr, linux/fs.h).
func setProject(path string, project uint32) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	defer dir.Close()
	var attributes [28]byte
	binary.NativeEndian.PutUint32(attributes[0:], 0x200)
	binary.NativeEndian.PutUint32(attributes[12:], project)
	return ioctl(dir, 0x401c5820, unsafe.Pointer(&attributes))
}

// makeSubvolume is what any user may do in a directory of his on btrfs (linux/btrfs.h).
func makeSubvolume(path, name string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	defer dir.Close()
	var arguments [4096]byte
	copy(arguments[8:], name)
	return ioctl(dir, 0x5000940e, unsafe.Pointer(&arguments))
}

// encrypt is what any user may do with an empty directory of his (fscrypt.rst in the kernel's documentation).
// lock takes the key away: nobody else will ever have it.
func encrypt(path string) (lock func() error, err error) {
	const addKey, setPolicy, removeKey = 0xc0506617, 0x800c6613, 0xc0406618 // linux/fscrypt.h
	dir, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	var key [80 + 64]byte // struct fscrypt_add_key_arg, and the key
	key[0], key[40] = 2, 64
	copy(key[80:], "any key")
	if err := ioctl(dir, addKey, unsafe.Pointer(&key)); err != nil {
		return nil, err
	}
	policy := [24]byte{2, 1, 4} // struct fscrypt_policy_v2: AES
	copy(policy[8:], key[8:24])
	if err := ioctl(dir, setPolicy, unsafe.Pointer(&policy)); err != nil {
		return nil, err
	}
	return func() error {
		above, err := os.Open(filepath.Dir(path))
		if err != nil {
			return err
		}
		defer above.Close()
		var remove [64]byte // struct fscrypt_remove_key_arg
		copy(remove[:], key[:40])
		return ioctl(above, removeKey, unsafe.Pointer(&remove))
	}, nil
}

func subvolumeFlags(path string, flags uint64) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	defer dir.Close()
	return ioctl(dir, 0x4008941a, unsafe.Pointer(&flags))
}

const subvolumeReadonly = 2

func ioctl(f *os.File, command uintptr, argument unsafe.Pointer) error {
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, f.Fd(), command, uintptr(argument)); errno != 0 {
		return fmt.Errorf("ioctl %x on %s: %w", command, f.Name(), errno)
	}
	return nil
}

// TestTeardownWhateverTheUserDid: no file system is an excuse for what a job leaves.
func TestTeardownWhateverTheUserDid(t *testing.T) {
	for _, c := range []struct{ kind, deed string }{
		{"ext4", "fill it"}, {"xfs", "fill it"}, {"btrfs", "fill it"},
		{"ext4 quota", "give it other projects"}, {"xfs", "give it other projects"},
		{"ext4", "encrypt it"},
		{"btrfs", "make subvolumes"}, {"btrfs", "make subvolumes in subvolumes"}, {"btrfs", "make subvolumes read-only"},
	} {
		for _, where := range []string{"trash", "place"} {
			t.Run(c.kind+" "+c.deed+" "+where, func(t *testing.T) {
				needImage(t, c.kind)
				nstest.NoLeaks(t)
				left := []string{}
				err := nstest.Run(t, "userDid", []string{c.kind, c.deed, where, t.TempDir()}, &left)
				needQuota(t, err)
				require.NoError(t, err)
				assert.Empty(t, left)
			})
		}
	}
}

func init() { nstest.Actions["userDid"] = userDidChild }

func userDidChild(input string) (any, error) {
	words := strings.Split(strings.Trim(input, `[]"`), `","`)
	kind, deed, where, dir := words[0], words[1], words[2], words[3]
	s, err := state.OpenState(dir + "/state")
	if err != nil {
		return nil, err
	}
	if err := oneline.Both(os.Mkdir(dir+"/scratch", 0o700), mountImage(kind, dir)); err != nil {
		return nil, err
	}
	jobs := dir + "/scratch/jobs"
	if err := os.MkdirAll(jobs+"/17/tmp", 0o700); err != nil {
		return nil, err
	}
	if where == "place" { // where there cannot be a trash
		if err := os.WriteFile(jobs+"/.trash", nil, 0o600); err != nil {
			return nil, err
		}
	}
	if err := whatUsersDo[deed](jobs + "/17/tmp"); err != nil {
		return nil, err
	}
	left := []string{}
	err = Teardown(s, dir+"/scratch", "17", time.Now().Add(2*time.Minute))
	if where == "place" {
		os.Remove(jobs + "/.trash")
		if err != nil && strings.Contains(err.Error(), "/jobs/.trash: not a directory") {
			err = nil
		}
	}
	if err != nil {
		left = append(left, err.Error())
	}
	filepath.WalkDir(jobs, func(path string, _ os.DirEntry, _ error) error {
		if path != jobs {
			left = append(left, path)
		}
		return nil
	})
	return left[:min(len(left), 10)], nil
}
