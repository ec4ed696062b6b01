// SPDX-License-Identifier: Apache-2.0

// Package drain turns findings into what Slurm is told about the node.
//
// First the history (how often in a row each check was bad or good) says what is
// wanted; if nothing new is, Slurm is not asked at all. Else the controller is
// asked for the node's state and reason, and Decide, which is pure, says what to
// do. Whatever is not understood, or comes late, is nothing to act on.
//
// A drain is taken back only if this node's record of it, the reason with its id,
// and who set it when are all as they were: a person who writes another reason has
// taken the node over. The record outlives a boot, the history does not.
//
// Slurm 22.05 or later: scontrol show node, scontrol update State=DRAIN and UNDRAIN.
package drain
