// SPDX-License-Identifier: Apache-2.0

package pool

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/netsetup/config"
)

// BenchmarkAcquire leases one address of 10 000, some of which are leased already.
func BenchmarkAcquire(b *testing.B) {
	site := newSite(b, "10.1.0.0/16")
	site.pool.Ranges = []config.Range{newRange("10.1.0.1", "10.1.39.16")}
	require.Equal(b, uint64(10000), site.pool.CountAddresses())
	s := site.open(b, "n1")
	leased, filler := 0, s
	for _, fill := range []int{0, 5000, 9999} {
		for ; leased < fill; leased++ {
			if leased%100 == 0 {
				filler = site.open(b, fmt.Sprintf("n%d", 2+leased/100))
			}
			mustAcquire(b, filler, newClaim(fmt.Sprint(leased), filler.node, "rail0"))
		}
		b.Run(fmt.Sprintf("leased=%d", fill), func(b *testing.B) {
			n := 0
			for b.Loop() {
				c := newClaim(fmt.Sprintf("bench-%d", n), "n1", "rail0")
				mustAcquire(b, s, c)
				b.StopTimer()
				require.NoError(b, s.Release(b.Context(), c.Owner))
				b.StartTimer()
				n++
			}
		})
	}
}

func BenchmarkRelease(b *testing.B) {
	s := newSite(b, "10.1.0.0/16").open(b, "n1")
	c := newClaim("bench", "n1", "rail0")
	for b.Loop() {
		b.StopTimer()
		mustAcquire(b, s, c)
		b.StartTimer()
		require.NoError(b, s.Release(b.Context(), c.Owner))
	}
}
