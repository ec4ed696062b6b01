// SPDX-License-Identifier: Apache-2.0

// Package layout holds the tree to its design: which package may import which, which C folder may include
// which, that a package exports nothing that nobody else uses, how long a Go file and a function may be, that
// comments begin with the name of what they describe, that tests wait for events rather than for a time, and
// that git tracks text only. It has tests only;
// docs/architecture.md has the drawing.
package layout
