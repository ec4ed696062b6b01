// SPDX-License-Identifier: Apache-2.0

// Package drain turns findings into drains and undrains of the node in Slurm.
//
// The history (the consecutive bad or good runs of each check) first determines the request; if
// the request is not new, Slurm is not queried at all. Otherwise the controller is queried for
// the node's state and reason, and planDecision, which is pure, determines the action. An
// answer that cannot be parsed or comes late leads to no action.
//
// A drain is undone only if this node's record of it, the reason with its id, and the user and time of the reason are
// all unchanged: a person who sets another reason has taken over the node. The one exception is Slurm's own "Kill task
// failed" in the place of a drain for storage that does not answer (planWithUnkilled). The record survives a reboot,
// the history does not. Where /var does not survive it either, the record is made anew if Slurm shows that the drain is
// this program's (recoverRecord).
//
// The package needs Slurm 22.05 or later: scontrol show node, scontrol update State=DRAIN and
// UNDRAIN.
package drain
