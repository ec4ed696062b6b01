// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestSrunNotices(t *testing.T) {
	for text, want := range map[string]string{
		"a\nsrun: Step created for StepId=9.1\nb\n":                                                               "a\nb\n",
		"srun: Step created for job 9\nb\n":                                                                       "b\n",
		"srun: Job 9 step creation temporarily disabled, retrying (Requested nodes are busy)\nb\n":                "b\n",
		"srun: Job 9 step creation still disabled, retrying (Requested nodes are busy)\nb\n":                      "b\n",
		"srun: warning: WORKERPOOL_THREADS=3 is configured outside of the suggested range of [0, 2] for 1 CPUs\n": "",
		"srun: error: n1: task 0: Exited with exit code 1\n":                                                      "srun: error: n1: task 0: Exited with exit code 1\n",
		"Step created for nobody\n srun: Step created for StepId=9.1\n":                                           "Step created for nobody\n srun: Step created for StepId=9.1\n",
	} {
		assert.Equal(t, want, srunNotices.ReplaceAllString(text, ""), text)
	}
}
