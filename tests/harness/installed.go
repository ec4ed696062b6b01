// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"crypto/rand"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// installation is what tests/releases/installed found in a Slurm that somebody has built. The zero value is Debian's.
type installation struct {
	prefix  string // of configure
	plugins string // directory of Slurm's own plugins
	auth    string // munge or slurm
	several string // "no": built without --enable-multiple-slurmd, and a cluster has one node
}

// readInstallation returns what the file slurm-tree of a root says.
func readInstallation(root string) (found installation) {
	text, _ := os.ReadFile(filepath.Join(root, "slurm-tree"))
	for line := range strings.Lines(string(text)) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		switch key {
		case "prefix":
			found.prefix = value
		case "plugins":
			found.plugins = value
		case "auth":
			found.auth = value
		case "several":
			found.several = value
		}
	}
	return found
}

// listPrefixMounts returns the mounts of a Slurm whose prefix lies outside /usr. The machine's /opt is its own.
func listPrefixMounts(base string) []mountCall {
	prefix := readInstallation(base).prefix
	if prefix == "" || prefix == "/usr" || strings.HasPrefix(prefix, "/usr/") {
		return nil
	}
	target := strings.TrimPrefix(prefix, "/")
	return []mountCall{{filepath.Join(base, prefix), target, "", bind, ""}, {"", target, "", remountReadOnly, ""}}
}

// useOwnAuth changes slurm.conf to auth/slurm if this Slurm has no munge, and writes the key.
func (c *Cluster) useOwnAuth(conf string) (string, error) {
	if c.base.slurm.auth != "slurm" {
		return conf, nil
	}
	path := filepath.Join(c.root, c.confDir(), "slurm.key")
	key := make([]byte, 1024)
	rand.Read(key)
	uid, gid, err := c.lookUpOwner("slurm")
	if err != nil {
		return "", err
	}
	conf = setLine(setLine(conf, "AuthType", "auth/slurm"), "CredType", "cred/slurm")
	return conf, errors.Join(replaceFile(path, string(key), 0o600), os.Chown(path, uid, gid))
}

// oneNode is why clusters have one node, and tests of two are skipped.
const oneNode = "needs a Slurm with --enable-multiple-slurmd: two slurmd of this one take each other's credentials for " +
	"replayed ones"

// findNodes returns the nodes of every cluster.
func findNodes() []string {
	if readInstallation(findRoot()).several == "no" {
		return []string{"n1"}
	}
	return []string{"n1", "n2"}
}

// secondNode matches the second node in the words of a command or in a batch script, by its name or number.
var secondNode = regexp.MustCompile(`(^|[^-\w]|-w)n(2\b|\[1[-,]2\])|(^|\s)(-N\s?|--nodes[= ])[2-9]`)

// requireNodes skips the test if the command needs a node that the cluster does not have.
func (c *Cluster) requireNodes(words ...string) {
	if len(Nodes) == 1 && c.test != nil && secondNode.MatchString(strings.Join(words, " ")) {
		c.test.Skip(oneNode)
	}
}

// PluginDirs returns Slurm's own directory of plugins and gojail's, as PluginDir of slurm.conf(5) names them.
func PluginDirs(t testing.TB) string {
	t.Helper()
	return findPlugins(t) + ":" + Prefix + "/lib/gojail"
}

// HasPlugin reports whether the Slurm of the clusters has a plugin, such as "namespace_linux".
func HasPlugin(t testing.TB, name string) bool {
	t.Helper()
	_, err := os.Stat(filepath.Join(findRoot(), findPlugins(t), name+".so"))
	return err == nil
}

// findRoot returns the root that clusters are made of.
func findRoot() string {
	repo, err := Repository()
	if err != nil || Release() == "" {
		return "/"
	}
	return filepath.Join(repo, "build/cache/slurm-"+Release())
}

// findPlugins returns Slurm's own directory of plugins.
func findPlugins(t testing.TB) string {
	t.Helper()
	if plugins := readInstallation(findRoot()).plugins; plugins != "" {
		return plugins
	}
	found, err := filepath.Glob(filepath.Join(findRoot(), "usr/lib/*/slurm-wlm"))
	require.NoError(t, err)
	require.Len(t, found, 1)
	_, inside, _ := strings.Cut(found[0], "usr/lib/")
	return "/usr/lib/" + inside
}
