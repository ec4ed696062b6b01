// SPDX-License-Identifier: Apache-2.0

package main

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestQuantile(t *testing.T) {
	assert.Equal(t, 2.0, quantile([]float64{3, 1, 2}, 0.5))
	assert.Equal(t, 2.5, quantile([]float64{4, 1, 3, 2}, 0.5))
	assert.Equal(t, 1.0, quantile([]float64{math.NaN(), 1}, 0.9), "a failed launch counts for nothing")
	assert.True(t, math.IsNaN(quantile(nil, 0.5)))
}

// A difference that is there is found although the rounds differ by far more.
func TestPaired(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var base, more, same []float64
	for range 40 {
		round := 30 + 10*random.NormFloat64()
		base = append(base, round+0.3*random.NormFloat64())
		more = append(more, round+1+0.3*random.NormFloat64())
		same = append(same, round+0.3*random.NormFloat64())
	}
	more[3] = math.NaN()
	d := comparePairs(more, base, random)
	assert.Equal(t, 39, d.N, "the round that failed is left out")
	assert.InDelta(t, 1, d.Median, 0.4)
	assert.Greater(t, d.Low, 0.5)
	assert.Less(t, d.High, 1.5)
	d = comparePairs(same, base, random)
	assert.Less(t, d.Low, 0.0)
	assert.Greater(t, d.High, 0.0)
}

func TestJudge(t *testing.T) {
	assert.Equal(t, met, formatVerdict(estimate{Median: 0.3, Low: 0.1, High: 0.9}, 0.4))
	assert.Equal(t, unclear, formatVerdict(estimate{Median: 0.5, Low: 0.1, High: 0.9}, 0.4))
	assert.Equal(t, missed, formatVerdict(estimate{Median: 0.5, Low: 0.45, High: 0.9}, 0.4))
	assert.Equal(t, missing, formatVerdict(estimate{Median: math.NaN()}, 0.4))
}
