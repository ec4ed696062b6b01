// SPDX-License-Identifier: Apache-2.0

package state

import (
	"testing"

	"github.com/moby/sys/mountinfo"
	specs "github.com/opencontainers/runtime-spec/specs-go"
	"github.com/stretchr/testify/assert"
)

// The kernel lists mounts by id, and one that was cloned early can be attached late.
func TestSettleTellsWhatIsThere(t *testing.T) {
	table := &mountTable{root: -1, mounts: []*mountinfo.Info{
		{ID: 1, Parent: 0, Mountpoint: "/", Options: "rw,nosuid"},
		{ID: 5, Parent: 7, Mountpoint: "/m", Options: "rw,nodev", VFSOptions: "rw,size=64k"},
		{ID: 7, Parent: 1, Mountpoint: "/m", Options: "ro,noexec"},
		{ID: 8, Parent: 1, Mountpoint: "/n", Options: "ro,relatime"},
	}}
	assert.Equal(t, 5, table.topAt("/m").ID)
	assert.Nil(t, table.topAt("/x"))
	assert.Equal(t, []string{"size=64k"}, sizeOptions(table.topAt("/m")))
	template := []specs.Mount{{Destination: "/m", Options: []string{"ro"}}, {Destination: "/n", Options: []string{"bind", "rw", "suid"}}}
	table.keepMade(template, nil)
	assert.Equal(t, []string{"ro"}, template[0].Options, "it is covered: as it was asked for")
	assert.Equal(t, []string{"bind", "ro"}, template[1].Options, "inherited from its source")
	own := table.keepMade([]specs.Mount{{Destination: "/m"}, {Destination: "/n"}, {Destination: "/x"}}, template)
	assert.Equal(t, []specs.Mount{{Destination: "/m", Options: []string{"nodev"}}}, own, "the others were not made")
}
