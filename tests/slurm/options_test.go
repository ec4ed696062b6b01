// SPDX-License-Identifier: Apache-2.0

package slurm_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

const whereAndWhat = "cat /etc/gojail-jail; cat /mnt/data/file /data/file"

// The options reach every step of a job on each way that Slurm has for them, the
// repeated --jail-mount in whole, also where the user's environment stays behind.
func TestOptionsTravel(t *testing.T) {
	c := sharedCluster(t)
	writeOnNode(t, c, "/data/alice/file", "1\n")
	writeOnNode(t, c, "/data/shared/file", "2\n")
	options := []string{"--jail=debian", "--jail-mount=/data/alice:/mnt/data", "--jail-mount=/data/shared:/data"}
	const want = "debian\n1\n2\n"

	for _, export := range []string{"--export=ALL", "--export=NONE", "--export=NIL", "--export=HOME"} {
		t.Run("srun "+export, func(t *testing.T) {
			args := append([]string{"srun", export}, options...)
			r := c.Run("alice", append(args, "/bin/sh", "-c", whereAndWhat)...)
			assert.Equal(t, want, r.Stdout, r)
		})
		t.Run("sbatch "+export, func(t *testing.T) {
			job := c.Batch("alice", whereAndWhat+"\n/usr/bin/srun /bin/sh -c '"+whereAndWhat+"'", append(options, export)...)
			assert.Equal(t, "COMPLETED "+want+want, job.State+" "+job.Output, job)
		})
	}
	t.Run("salloc", func(t *testing.T) {
		args := append([]string{"salloc", "-Q"}, options...)
		r := c.Run("alice", append(args, "srun", "/bin/sh", "-c", whereAndWhat)...)
		assert.Equal(t, want, r.Stdout, r)
	})
}

// What a step says replaces what its job was submitted with.
func TestStepOptionsReplaceThoseOfTheJob(t *testing.T) {
	c := sharedCluster(t)
	job := c.Batch("alice", "cat /etc/gojail-jail; srun --jail=other cat /etc/gojail-jail; SLURM_JAIL=other srun cat /etc/gojail-jail; "+
		"srun cat /etc/gojail-jail", "--jail=debian")
	assert.Equal(t, "COMPLETED debian\nother\nother\ndebian\n", job.State+" "+job.Output, job)
}

// TestScriptInsideAJob requires that the options of a script count that is submitted inside a job with other options.
func TestScriptInsideAJob(t *testing.T) {
	c := sharedCluster(t)
	for _, row := range []struct{ script, args, want string }{
		{"#SBATCH --jail=other\n", "", "other"},
		{"", "", "debian"},
		{"#SBATCH --jail=debian\n", "--jail=other", "other"},
		{"#SBATCH --jail=debian\n", "", "debian"},
	} {
		job := c.Batch("alice", "sbatch -Q -W -wn2 -n1 --output=/home/alice/inner "+row.args+" <<'END'\n#!/bin/sh\n"+row.script+"cat /etc/gojail-jail\nEND", "--jail=debian", "-wn1", "-n1")
		inner, _ := c.ReadAnywhere("/home/alice/inner")
		c.Root("sh", "-c", "rm -f /srv/jails/*/home/alice/inner")
		assert.Equal(t, "COMPLETED "+row.want+"\n", job.State+" "+inner, job)
	}
}
