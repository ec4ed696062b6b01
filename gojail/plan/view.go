// SPDX-License-Identifier: Apache-2.0

package plan

import specs "github.com/opencontainers/runtime-spec/specs-go"

// View is a root file system to assemble: a jail, or its stage. It is planned
// without privilege and assembled by Apply.
type View struct {
	Spec        *specs.Spec   // Apply takes Root, Mounts in order, Linux.{Devices,MaskedPaths,ReadonlyPaths}; the rest tells what tasks get
	RootOptions []string      // mount options of the root bind; unused for a tmpfs root
	TmpfsRoot   bool          // the stage: an empty tmpfs instead of Spec.Root.Path, read-only in the end
	Data        []specs.Mount // on top of Mounts: what users may own, where root looks. No symlink in one leads out of it
	Foreign     []specs.Mount // on top of Data, where it has a place for them
	Links       []Link        // symlinks to make on file systems that the view itself mounted
	Dirs        []string      // likewise directories
	Files       []File        // what hides files of /proc
}

// Link is a symlink of a view: Path is absolute in it, Target is kept as it is.
type Link struct{ Path, Target string }

// File is a file with a content of its own, read-only, over the one that is at Path.
type File struct{ Path, Content string }
