// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"encoding/base64"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/gojail/source/sourcetest"
	"github.com/gojail/gojail/gojail/unpack"
	"github.com/gojail/gojail/internal/nstest"
)

// childVariable makes this test binary a child that unpacks.
const childVariable = "GOJAIL_TEST_UNPACK"

func TestMain(m *testing.M) {
	if os.Getenv(childVariable) != "" {
		unpack.Child(os.Args[len(os.Args)-1])
	}
	os.Exit(m.Run())
}

// confine returns the command of unpack.Confine.
func confine(ctx context.Context, program string, args ...string) (*exec.Cmd, error) {
	cmd, err := unpack.Confine(ctx, []string{"/proc/self/exe"}, program, args...)
	if err == nil {
		cmd.Env = append(os.Environ(), childVariable+"=1")
	}
	return cmd, err
}

// largeDictionary is "hello" compressed by xz --lzma2=preset=0,dict=1GiB.
const largeDictionary = "/Td6WFoAAATm1rRGAgAhASQAAABeH8f5AQAFaGVsbG8KAAAApWCX8ZT2/eAAAR4GwS+kHR+2830BAAAAAARZWg=="

// TestDictionaryOfXZ: the stream says how much memory its decompression takes.
func TestDictionaryOfXZ(t *testing.T) {
	nstest.NeedRoot(t)
	text, err := base64.StdEncoding.DecodeString(largeDictionary)
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "x.xz")
	require.NoError(t, os.WriteFile(path, text, 0o644))
	t.Setenv("XZ_DEFAULTS", "--memlimit=4GiB")
	t.Setenv("XZ_OPT", "--no-such-option")
	_, _, err = readNames(t, "tar:"+path, Options{})
	require.EqualError(t, err, "cannot decompress it with xz in 256 MiB of memory; if the source is trusted, decompress it first")

	require.NoError(t, os.WriteFile(path, sourcetest.Tar(t, "a=1"), 0o644))
	t.Setenv("XZ_OPT", "")
	packed, err := exec.Command("xz", "-9", "--extreme", "--stdout", path).Output()
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, packed, 0o644))
	_, layers, err := readNames(t, "tar:"+path, Options{})
	require.NoError(t, err, "the largest dictionary of a preset")
	assert.Equal(t, []string{"a"}, layers)
}

func TestBzip2(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.bz2")
	pack := exec.Command("bzip2", "--stdout")
	require.NoError(t, os.WriteFile(path, sourcetest.Tar(t, "a=1", "b/"), 0o644))
	in, err := os.Open(path)
	require.NoError(t, err)
	defer in.Close()
	pack.Stdin = in
	packed, err := pack.Output()
	require.NoError(t, err)
	nothing, err := exec.Command("bzip2", "--stdout", "/dev/null").Output()
	require.NoError(t, err)
	t.Setenv("PATH", "") // no program is run
	for name, test := range map[string]struct{ text, want string }{
		"one stream":  {string(packed), ""},
		"two streams": {string(packed) + string(nothing), ""},
		"damaged":     {"BZh9" + string(packed[5:]), "cannot decompress it with bzip2: bzip2 data invalid: "},
		"cut off":     {string(packed[:len(packed)/2]), "unexpected EOF"},
	} {
		require.NoError(t, os.WriteFile(path, []byte(test.text), 0o644))
		_, layers, err := readNames(t, "tar:"+path, Options{})
		if test.want != "" {
			require.ErrorContains(t, err, test.want, name)
			continue
		}
		require.NoError(t, err, name)
		assert.Equal(t, []string{"a b/"}, layers, name)
	}
}
