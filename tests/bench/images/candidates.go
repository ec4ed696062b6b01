// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// candidate is a way to get the image's tree onto the disk.
type candidate struct {
	name, about string
	script      string // of sh, in a new directory
	why         string // reason why it is not measured
	wall, cpu   []float64
	memory      []float64 // MiB
}

// listCandidates returns the candidates, of which only those named in only are measured, unless it is empty.
func (b *bench) listCandidates(only string) []*candidate {
	build := fmt.Sprintf("mkdir -m 755 store && %s jail build bench --no-targets --store $PWD/store --from ", b.gojail)
	list := []*candidate{
		{name: "tar", about: "tar -x of each layer: no digests, no whiteouts", script: "mkdir tree && " + b.formatTar() + " && sync -f tree"},
		{name: "gojail-layout", about: "gojail jail build --from oci:DIR", script: build + "oci:" + b.layoutPath() + ":" + tag},
		{name: "gojail-registry", about: "gojail jail build --from docker://…, on loopback", script: build + "docker://" + b.reference},
		{name: "umoci", about: "umoci unpack", script: fmt.Sprintf("%s unpack --image %s:%s bundle && sync -f bundle", b.umoci, b.layoutPath(), tag)},
		{name: "podman", about: "podman pull, and podman export | tar -x", script: b.formatPodman()},
		{name: "gojail-again", about: "gojail-layout once more: how far apart the same thing is", script: build + "oci:" + b.layoutPath() + ":" + tag},
	}
	for _, c := range list {
		if only != "" && !slices.Contains(strings.Split(only, ","), c.name) {
			c.why = "not asked for"
			continue
		}
		if program := map[string]string{"umoci": b.umoci, "podman": "podman"}[c.name]; program != "" {
			if _, err := exec.LookPath(program); err != nil {
				c.why = err.Error()
			}
		}
	}
	return list
}

// formatPodman returns the commands for podman with a storage of its own. It refuses paths of more than 50 characters for what it
// needs while it runs.
func (b *bench) formatPodman() string {
	return fmt.Sprintf(`run=$(mktemp -d /tmp/bench-XXXXXX) && trap 'rm -rf "$run"' EXIT
podman() { command podman --root "$PWD/storage" --runroot "$run/root" --tmpdir "$run/tmp" --storage-driver overlay --events-backend none "$@"; }
podman pull --quiet oci:%s:%s >image && id=$(podman create "$(cat image)") && mkdir tree && podman export "$id" | tar -x -C tree && sync -f tree`, b.layoutPath(), tag)
}

// formatTar returns the commands that unpack all layers.
func (b *bench) formatTar() string {
	var commands []string
	for n := range layers {
		commands = append(commands, "tar -xf ../"+filepath.Base(b.layerPath(n))+" -C tree")
	}
	return strings.Join(commands, " && ")
}
