// SPDX-License-Identifier: Apache-2.0

package node

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/gojail/config"
	"github.com/gojail/gojail/internal/nstest"
)

func TestSpoolIsSlurmConfs(t *testing.T) {
	const text = "default = \"a\"\n[jail.a]\nroot = \"/j\"\n"
	for dir, want := range map[string]config.Slurm{
		"/var/lib/slurm/slurmd":   {Spool: "/var/lib/slurm/slurmd", SpoolBase: "/var/lib/slurm/slurmd"},
		"/var/spool/slurmd/%n":    {Spool: "/var/spool/slurmd/n1", SpoolBase: "/var/spool/slurmd"},
		"/var/spool/slurmd/%h":    {Spool: "/var/spool/slurmd/host", SpoolBase: "/var/spool/slurmd"},
		"/var/spool/slurmd/%h-%n": {Spool: "/var/spool/slurmd/host-n1", SpoolBase: "/var/spool/slurmd"},
	} {
		given := func(conf string) config.SpoolDir {
			assert.Equal(t, "/etc/slurm", conf)
			return config.SpoolDir{Dir: dir, Host: "host", From: "/etc/slurm/slurm.conf"}
		}
		c, err := config.ParseConfigOn(text, "n1", given)
		require.NoError(t, err)
		assert.Equal(t, want, config.Slurm{Spool: c.Slurm.Spool, SpoolBase: c.Slurm.SpoolBase}, dir)
		c, err = config.ParseConfigOn(text+"[slurm]\nspool = \"/spool\"", "n1", given)
		require.NoError(t, err)
		assert.Equal(t, "/spool", c.Slurm.Spool, "what gojail.toml says comes first")
	}
	_, err := config.ParseConfigOn(text, "n1", func(string) config.SpoolDir {
		return config.SpoolDir{Dir: "/var/%h", Host: "h", From: "/etc/slurm/slurm.conf"}
	})
	assert.ErrorContains(t, err, "would hide /var of every jail; use a subdirectory, such as /var/slurmd/%n (SlurmdSpoolDir of /etc/slurm/slurm.conf)")
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(dir+"/slurm.conf", []byte("SlurmdSpoolDir=/x/%n/\n"), 0o644))
	assert.Equal(t, "/x/%n", readSpoolDir(dir).Dir)
}

func TestLoadRefusesWhatOthersCanWrite(t *testing.T) {
	nstest.NeedRoot(t)
	dir := t.TempDir()
	path := filepath.Join(dir, "gojail.toml")
	text := []byte("default = \"none\"\nallow_none = true\n")
	require.NoError(t, os.WriteFile(path, text, 0o644))
	c, err := Load(path, "")
	require.NoError(t, err)
	assert.EqualValues(t, len(text), c.Identity.Size)
	assert.NotZero(t, c.Identity.Ino)
	assert.NotZero(t, c.Identity.MtimeSec)

	for name, test := range map[string]struct {
		change func() error
		want   string
	}{
		"group writes": {func() error { return os.Chmod(path, 0o664) }, "is writable by others (mode 0664); run: chmod go-w " + path},
		"owner":        {func() error { return os.Chown(path, 65534, 0) }, "belongs to uid 65534 and not to root"},
		"directory":    {func() error { return os.Chmod(dir, 0o777) }, dir + ": is writable by others (mode 0777)"},
		"dir owner":    {func() error { return os.Chown(dir, 65534, 0) }, dir + ": belongs to uid 65534"},
		"missing":      {func() error { return os.Remove(path) }, "cannot read the configuration: no such file"},
		"a directory":  {func() error { os.Remove(path); return os.Mkdir(path, 0o755) }, "not a regular file"},
		"a link out": {func() error {
			open := t.TempDir()
			target := filepath.Join(open, "gojail.toml")
			os.Remove(path)
			if err := os.WriteFile(target, text, 0o644); err != nil {
				return err
			}
			if err := os.Symlink(target, path); err != nil {
				return err
			}
			return os.Chmod(open, 0o777)
		}, "is writable by others (mode 0777)"},
	} {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, os.RemoveAll(path))
			require.NoError(t, os.WriteFile(path, text, 0o644))
			require.NoError(t, os.Chmod(dir, 0o755))
			require.NoError(t, os.Chown(dir, 0, 0))
			require.NoError(t, test.change())
			_, err := Load(path, "")
			assert.ErrorContains(t, err, test.want)
		})
	}
}
