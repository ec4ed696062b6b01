// SPDX-License-Identifier: Apache-2.0

// Package attach gives a job its VFs, addressed and checked, and takes them back.
package attach
