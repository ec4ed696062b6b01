// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/gojail/contract"
)

func TestCheckAllocated(t *testing.T) {
	for answer, want := range map[string]string{
		"echo 7 RUNNING 5001 n1":                               "",
		"echo '7 CONFIGURING 5001 n[0-3]'":                     "",
		"echo 7 SUSPENDED 5001 n1":                             "",
		"echo '6 RUNNING 5001 n2'; echo '7 STOPPED 5001 n1'":   "",
		"echo 7 RUNNING 5001 n2":                               "job 7 does not have this node any more",
		"echo 6 RUNNING 5001 n1":                               "job 7 does not have this node any more",
		"echo '7 PENDING 5001 '":                               "job 7 does not have this node any more",
		"echo 7 COMPLETING 5001 n1":                            "job 7 does not have this node any more",
		"echo 7 NODE_FAIL 5001 n1":                             "job 7 does not have this node any more",
		"echo 7 RUNNING 5002 n1":                               "job 7 does not have this node any more",
		"echo '7 COMPLETED 5001 n1'; echo '7 RUNNING 5002 n1'": "job 7 does not have this node any more",
		"true": "job 7 does not have this node any more",
		"echo Invalid job id specified >&2; exit 1":     "job 7 does not have this node any more",
		"echo Unable to contact slurm ctld >&2; exit 1": "cannot ask Slurm whether job 7 has this node: ",
	} {
		t.Run(answer, func(t *testing.T) {
			w, dir := newSweep(t, nil)
			w.config.Slurm.Host = []string{dir}
			require.NoError(t, os.MkdirAll(dir+"/bin", 0o700))
			require.NoError(t, os.WriteFile(dir+"/bin/squeue", []byte("#!/bin/sh\n"+answer+"\n"), 0o700))
			note := filepath.Join(w.state.Path(), contract.AllocatedDir, "7")
			require.NoError(t, os.Mkdir(filepath.Dir(note), 0o700))
			require.NoError(t, os.WriteFile(note, nil, 0o600))
			err := CheckAllocated(t.Context(), w.state, w.config, "7", "5001")
			if want == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, want)
			}
			assert.Equal(t, want == "" || want[:6] == "cannot", w.state.IsAllocated("7"))
		})
	}
}
