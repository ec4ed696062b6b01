// SPDX-License-Identifier: Apache-2.0

package tarblock

import (
	"archive/tar"
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestHeaders(t *testing.T) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	require.NoError(t, w.WriteHeader(&tar.Header{Name: "\xff\xfe", Typeflag: tar.TypeFifo, Format: tar.FormatGNU}))
	require.NoError(t, w.Close())
	block := b.Bytes()[:Size]
	assert.True(t, IsHeader(block))
	unsigned, signed := sumBlock(block)
	require.NotEqual(t, unsigned, signed)
	for form, want := range map[string]bool{
		"%06o\x00 ": true, "%07o\x00": true, " %6o\x00": true, "%6o  ": true, "%o\x00\x00": true, "%o\x00x": true,
		"%06d\x00 ": false, "": false, "x%06o\x00": false,
	} {
		for _, sum := range []int64{unsigned, signed} {
			copy(block[sumBegin:sumEnd], zeros[:])
			if form != "" {
				copy(block[sumBegin:sumEnd], fmt.Sprintf(form, sum))
			}
			assert.Equal(t, want, IsHeader(block), "%q %d", form, sum)
		}
	}
	SetType(block, 'x')
	assert.True(t, IsHeader(block))
	h, err := tar.NewReader(strings.NewReader(string(block[:156]) + "6" + string(block[157:]))).Next()
	assert.ErrorIs(t, err, tar.ErrHeader, "%v", h)
	assert.False(t, IsHeader(block[:Size-1]))
	assert.False(t, IsHeader(zeros[:]))
	assert.True(t, IsZero(zeros[:17]))
	assert.False(t, IsZero(block))
}
