// SPDX-License-Identifier: Apache-2.0

package drain

import "strings"

// unkilledReason is Slurm's reason for a node on which it could not kill a process of a job (ESLURMD_KILL_TASK_FAILED).
// slurmd sets it in the place of any other reason.
const unkilledReason = "Kill task failed"

// explainsDrain reports whether the fault of the record explains that Slurm has drained the node for a process that it
// could not kill: Slurm had shown the record's own reason before, which is storage that does not answer.
func (r *Record) explainsDrain(node *nodeState) bool {
	return r != nil && r.Silent && r.Stamp != "" && r.Before == nil && node.Reason == unkilledReason &&
		strings.HasPrefix(node.stamp, "root@")
}

// planWithUnkilled returns the action for a node that Slurm has drained for a process that it could not kill, while it
// was drained for storage that did not answer. The node returns when the storage is well, it has no job, and no such
// process is left. If another check fails meanwhile, the process may have hung for another reason, and the node is left
// to a person.
func planWithUnkilled(want Request, record *Record, node *nodeState, unkilled string) Decision {
	const slurm = "Slurm could not kill a process (" + unkilledReason + ")"
	switch {
	case want.Goal == ToHold:
		return Decision{None, slurm + " while the storage does not answer"}
	case want.Goal != ToUndrain:
		return yieldNode(record, "it is already drained: "+node.Reason)
	case unkilled != "":
		return Decision{None, slurm + ", and there is still " + unkilled}
	case !node.hasState("IDLE") || node.hasState("COMPLETING"):
		return Decision{None, slurm + ", and the node still has a job"}
	}
	return planUndrain(node, true)
}
