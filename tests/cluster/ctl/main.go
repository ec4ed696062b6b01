// SPDX-License-Identifier: Apache-2.0

// Command ctl starts and ends the private cluster of make cluster.
package main

import (
	"fmt"
	"os"

	"github.com/gojail/gojail/tests/cluster"
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
		err = up(cluster.Options{Name: name, Outlive: true, Plugin: true, Jails: []string{"debian", "other"}})
	case "up-plain":
		err = up(cluster.Options{Name: name, Outlive: true})
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

func up(options cluster.Options) error {
	c, err := cluster.Up(options)
	if err != nil {
		return err
	}
	env, err := c.WriteEnv()
	if err != nil {
		return err
	}
	fmt.Printf("Slurm runs (pid %d, %s). Use it from a shell:\n  . %s\n  srun --jail=debian cat /etc/os-release\nEnd it with make cluster-down.\n", c.Pid, c.Dir, env)
	return nil
}

func down() error {
	c, err := cluster.Attach(name)
	if err != nil {
		fmt.Println(err)
		return nil
	}
	defer os.Remove(c.EnvFile())
	return c.Stop()
}
