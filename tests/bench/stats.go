// SPDX-License-Identifier: Apache-2.0

package main

import (
	"math"
	"math/rand/v2"
	"slices"
)

// estimate is the median of paired differences, in the unit of the samples,
// with its 95 % confidence interval.
type estimate struct {
	Median float64 `json:"median"`
	Low    float64 `json:"low"`
	High   float64 `json:"high"`
	N      int     `json:"n"`
}

// resamples of a bootstrap.
const resamples = 4000

// comparePairs compares two candidates by the rounds that both have. A failed launch is a NaN.
func comparePairs(of, base []float64, random *rand.Rand) estimate {
	var differences []float64
	for i := range min(len(of), len(base)) {
		if d := of[i] - base[i]; !math.IsNaN(d) {
			differences = append(differences, d)
		}
	}
	return bootstrap(differences, random)
}

// bootstrap returns the percentile interval of the median (Efron 1979).
func bootstrap(values []float64, random *rand.Rand) estimate {
	if len(values) == 0 {
		return estimate{Median: math.NaN(), Low: math.NaN(), High: math.NaN()}
	}
	medians := make([]float64, resamples)
	drawn := make([]float64, len(values))
	for i := range medians {
		for j := range drawn {
			drawn[j] = values[random.IntN(len(values))]
		}
		medians[i] = quantile(drawn, 0.5)
	}
	return estimate{quantile(values, 0.5), quantile(medians, 0.025), quantile(medians, 0.975), len(values)}
}

// quantile interpolates between the two nearest of the values that are not NaN.
func quantile(values []float64, q float64) float64 {
	sorted := slices.DeleteFunc(slices.Clone(values), math.IsNaN)
	if len(sorted) == 0 {
		return math.NaN()
	}
	slices.Sort(sorted)
	at := q * float64(len(sorted)-1)
	low := int(at)
	high := min(low+1, len(sorted)-1)
	return sorted[low] + (at-float64(low))*(sorted[high]-sorted[low])
}

// medianRatio returns the median of the ratios of pairs.
func medianRatio(of, base []float64) float64 {
	var ratios []float64
	for i := range min(len(of), len(base)) {
		ratios = append(ratios, of[i]/base[i])
	}
	return quantile(ratios, 0.5)
}
