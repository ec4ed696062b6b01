// SPDX-License-Identifier: Apache-2.0

package plan

import specs "github.com/opencontainers/runtime-spec/specs-go"

// View is a root file system to assemble: a jail, or its stage. It is planned without privilege, and
// mount.Apply assembles it.
type View struct {
	Spec        *specs.Spec   // Apply uses Root, Mounts in order, and Linux.{Devices,MaskedPaths,ReadonlyPaths}; the rest describes what tasks get
	Skeleton    []Target      // mount targets that the root lacks, on an overlay of it, which is the root then
	RootOptions []string      // mount options of the root's bind mount; unused for a tmpfs root
	TmpfsRoot   bool          // the stage: an empty tmpfs, finally read-only, instead of Spec.Root.Path
	Data        []specs.Mount // mounts on top of Spec.Mounts that users may own but root uses. No symlink in one leads out of it
	Foreign     []specs.Mount // mounts on top of Data, where it has a mount point for them
	Links       []Link        // symlinks to create on file systems that the view itself mounted
	Dirs        []string      // directories to create there
	SharedDirs  []string      // likewise, with mode 1777
	Files       []File        // files that hide files of /proc
}

// Link is a symlink of a view: Path is absolute in the view, Target is used unchanged.
type Link struct{ Path, Target string }

// File is a read-only file with the given content that covers the file at Path.
type File struct{ Path, Content string }
