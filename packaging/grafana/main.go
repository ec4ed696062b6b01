// SPDX-License-Identifier: Apache-2.0

// grafana OUT: writes the dashboards for Grafana into the directory OUT, one file each. What is on them is in
// cluster.go, node.go, job.go, jails.go, rails.go, health.go and scheduler.go, a line or two for each panel:
// Grafana's JSON has 40 lines for a panel, of which 37 are the same in each.
package main

import (
	"fmt"
	"os"
	"path/filepath"
)

// dashboards are all dashboards.
var dashboards = []dashboard{cluster, node, job, jails, rails, health, scheduler}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: grafana OUT")
		os.Exit(2)
	}
	if err := writeAll(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "grafana:", err)
		os.Exit(1)
	}
}

func writeAll(out string) error {
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	for _, d := range dashboards {
		text, err := d.render()
		if err != nil {
			return fmt.Errorf("%s: %w", d.name, err)
		}
		if err := os.WriteFile(filepath.Join(out, d.name+".json"), text, 0o644); err != nil {
			return err
		}
	}
	return nil
}
