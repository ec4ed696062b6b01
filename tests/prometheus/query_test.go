// SPDX-License-Identifier: Apache-2.0

package prometheus_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// series is one series of an answer, with its last value.
type series struct {
	labels map[string]string
	value  float64
}

// get asks Prometheus's API, and returns the data of the answer or the error that Prometheus tells.
func (s *site) get(t *testing.T, path string, parameters url.Values, data any) error {
	t.Helper()
	response, err := s.client.Get("http://" + prometheus + "/api/v1/" + path + "?" + parameters.Encode())
	if err != nil {
		return err
	}
	defer response.Body.Close()
	answer := struct {
		Error    string
		Warnings []string
		Data     any
	}{Data: data}
	require.NoError(t, json.NewDecoder(response.Body).Decode(&answer))
	if answer.Error != "" || len(answer.Warnings) > 0 {
		return fmt.Errorf("%s%v", answer.Error, answer.Warnings)
	}
	return nil
}

// query executes a query for now, or over the last ten seconds as a graph does.
func (s *site) query(t *testing.T, text string, graph bool) (all []series, err error) {
	t.Helper()
	var data struct {
		Result []struct {
			Metric map[string]string
			Value  [2]any
			Values [][2]any
		}
	}
	path, parameters := "query", url.Values{"query": {text}}
	if graph {
		now := time.Now().Unix()
		path = "query_range"
		parameters.Set("start", strconv.FormatInt(now-10, 10))
		parameters.Set("end", strconv.FormatInt(now, 10))
		parameters.Set("step", "1")
	}
	if err := s.get(t, path, parameters, &data); err != nil {
		return nil, err
	}
	for _, r := range data.Result {
		last := r.Value
		if graph {
			last = r.Values[len(r.Values)-1]
		}
		value, err := strconv.ParseFloat(last[1].(string), 64)
		require.NoError(t, err)
		all = append(all, series{r.Metric, value})
	}
	return all, nil
}

// labelValues returns the values of a label, with a selector of those of its series.
func (s *site) labelValues(t *testing.T, label, selector string) (values []string) {
	t.Helper()
	parameters := url.Values{}
	if selector != "" {
		parameters.Set("match[]", selector)
	}
	require.NoError(t, s.get(t, "label/"+label+"/values", parameters, &values), "%s %s", label, selector)
	return values
}
