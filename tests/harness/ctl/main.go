// SPDX-License-Identifier: Apache-2.0

// Command ctl starts and ends the private cluster of make cluster.
package main

import (
	"fmt"
	"os"

	"github.com/gojail/gojail/tests/harness"
)

const name = "private"

func main() {
	verb := ""
	if len(os.Args) == 2 {
		verb = os.Args[1]
	}
	var err error
	switch verb {
	case "up":
		err = up(harness.Options{Name: name, Outlive: true, Plugin: true, Jails: []string{"debian", "other"}})
	case "up-plain":
		err = up(harness.Options{Name: name, Outlive: true})
	case "down":
		err = down()
	default:
		err = fmt.Errorf("usage: ctl up | up-plain | down")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func up(options harness.Options) error {
	c, err := harness.Up(options)
	if err != nil {
		return err
	}
	env, err := c.WriteEnv()
	if err != nil {
		return err
	}
	fmt.Printf("A private Slurm runs, nodes n1 and n2. In any shell of root's:\n  source %s\n", env)
	if options.Plugin {
		fmt.Print("  srun --jail=debian cat /etc/gojail-jail          # as alice; CLUSTER_USER=bob or root for others\n" +
			"  sbatch --jail=other --wrap='ls /' --output=/home/alice/out\n" +
			"  gojail check                                     # of n1; CLUSTER_NODE=n2 for the other\n" +
			"  in-cluster ls /srv/jails/other/home/alice        # anything else in there\n")
	}
	fmt.Println("It stays until: make cluster-down")
	return nil
}

func down() error {
	c, err := harness.Attach(name)
	if err != nil {
		fmt.Println(err)
		return nil
	}
	defer os.Remove(c.EnvFile())
	if err := c.Stop(); err != nil {
		return err
	}
	fmt.Println("The private Slurm is stopped; nothing of it is left.")
	return nil
}
