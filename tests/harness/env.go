// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// clientCommands get a wrapper that runs them inside the machine.
var clientCommands = []string{"srun", "sbatch", "salloc", "sattach", "scancel", "scontrol", "sinfo", "squeue", "gojail"}

// EnvFile returns the file that a shell sources to use the cluster.
func (c *Cluster) EnvFile() string { return filepath.Join(filepath.Dir(c.Dir), "env") }

// WriteEnv writes the wrappers and EnvFile, for a shell outside the machine.
func (c *Cluster) WriteEnv() (string, error) {
	_, start, err := processStat(c.Pid)
	if err != nil {
		return "", err
	}
	bin := filepath.Join(c.Dir, "bin")
	wrapper := fmt.Sprintf(`#!/bin/sh
# Runs a command inside the private cluster %[1]s as $CLUSTER_USER (default alice).
stat=$(cat /proc/%[2]d/stat 2>/dev/null)
set -- "$0" "$@"
if [ "$(echo "${stat##*) }" | cut -d' ' -f20)" != %[3]s ]; then
	echo "the private cluster is not running: make cluster" >&2
	exit 1
fi
command=${1##*/}; shift
user=${CLUSTER_USER:-alice}
case $command in
gojail) user=root; set -- --node="${CLUSTER_NODE:-n1}" --state=/run/gojail/%%n "$@" ;;
scontrol) user=${CLUSTER_USER:-root} ;;
in-cluster) command=$1; shift ;;
esac
home=/home/$user; [ "$user" != root ] || home=/root
exec nsenter %[4]s env -C "$home" PATH=%[5]s/sbin:/usr/bin:/bin:/usr/sbin:/sbin HOME="$home" USER="$user" \
	setpriv --reuid="$user" --regid="$user" --init-groups "$command" "$@"
`, c.Name, c.Pid, start, strings.Join(c.enterArguments(true), " "), Prefix)
	if err := replaceFile(filepath.Join(bin, "in-cluster"), wrapper, 0o755); err != nil {
		return "", err
	}
	for _, command := range clientCommands {
		if err := os.Symlink("in-cluster", filepath.Join(bin, command)); err != nil {
			return "", err
		}
	}
	text := fmt.Sprintf("# Source this: srun, sbatch, ... and gojail then run inside the private cluster;\n"+
		"# in-cluster CMD runs anything there. CLUSTER_USER=alice|bob|root says who,\n"+
		"# CLUSTER_NODE=n1|n2 the node that gojail looks at.\n"+
		"export PATH=%q:\"$PATH\"\n", bin)
	return c.EnvFile(), replaceFile(c.EnvFile(), text, 0o644)
}
