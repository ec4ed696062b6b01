// SPDX-License-Identifier: Apache-2.0

package state

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/gojail/contract"
	"github.com/gojail/gojail/gojail/state/statetest"
)

func TestLaunches(t *testing.T) {
	s := newState(t)
	none, err := s.Launches()
	require.NoError(t, err)
	assert.Empty(t, none)
	format := func(l Launches) string {
		var text bytes.Buffer
		require.NoError(t, binary.Write(&text, binary.NativeEndian, l))
		return text.String()
	}
	good := Launches{Version: contract.Version, Entered: 3, TookUs: 17}
	good.Failed[5], good.Took[9] = 1, 2
	statetest.AddRecord(t, s, "launches/debian", format(good))
	statetest.AddRecord(t, s, "launches/.none", format(Launches{Version: contract.Version}))
	statetest.AddRecord(t, s, "launches/old", format(Launches{Version: contract.Version - 1, Entered: 3}))
	statetest.AddRecord(t, s, "launches/short", format(good)[:40])
	statetest.AddRecord(t, s, "launches/long", format(good)+"x")
	statetest.AddRecord(t, s, "launches/directory/file", "")
	all, err := s.Launches()
	require.NoError(t, err)
	assert.Equal(t, map[string]Launches{"debian": good, "": {Version: contract.Version}}, all)
}
