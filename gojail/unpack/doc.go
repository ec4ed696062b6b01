// SPDX-License-Identifier: Apache-2.0

// Package unpack makes a directory tree from archives that nobody vouches for: the layers of an image, or a tar
// file. It also lists the files of a tree, for a later comparison.
//
// A child process does the work. It lives in its own mount, network, IPC and PID namespaces, and its root is the
// target: pivot_root(2), no /proc, nothing else mounted. So no name in an archive, no symbolic link and no hard link
// can lead out of the target, whatever the code does with it. The child reads one plain tar stream from its standard
// input; the caller decompresses it and verifies its digests. One child unpacks one layer.
//
// The same namespaces confine xz, the only other program that reads bytes of an image (Confine).
//
// What the child does with an entry:
//
//   - Names are taken as if the target were "/": "..", absolute names and absolute symbolic links stay inside. A
//     symbolic link in the middle of a name is followed, as in the running image.
//   - Types of GNU tar, star and Solaris become those of POSIX or are no files; others are refused
//     (types.go). Forms of an archive that archive/tar does not read are changed before it sees them (stream.go).
//   - An entry replaces an existing file; an existing directory keeps its content.
//   - Owners are numbers. Times are kept, also those of directories to which a layer only adds a file.
//   - Set-user-ID and set-group-ID bits of files and security.capability are left out unless Policy.Setuid is set:
//     shared storage is seen by each user of each node, outside every jail.
//   - Extended attributes of user.* are kept, except those of overlayfs. All others are left out: security.selinux
//     and system.nfs4_acl belong to the machine that wrote them, and trusted.overlay.* would change what an
//     overlay over the tree shows.
//   - Device nodes follow Policy.Devices. A jail has its own /dev, so that none is needed.
//   - Holes of files stay holes: blocks of zeros are not written.
//
// Memory does not depend on the sizes of files, nor on how long and how deep their names are. It grows by up to 140
// bytes for each directory of a layer, because their times are set at the end, and by up to 40 for each other entry,
// because an opaque directory spares what its own layer brought. Limits.Entries limits both; directories that an
// archive implies count. The names in an opaque directory are in memory together while it is emptied. The list holds up
// to 100 bytes for each file with several names, so that it reads the file once.
//
// Nothing of opencontainers/umoci is used (oci/layer, v0.6.0), nor of go.podman.io/storage (pkg/archive): the first
// resolves names component by component in a tree that others may see, and keeps what upper layers brought in a map of
// paths; the second comes with the whole store of podman, and also needs a child whose root is the target
// (pkg/chrootarchive). In such a child no name needs resolution, and the rest is this package. The cases of their
// tests are tested here:
//
//	umoci: SanitiseScoping, SymlinkScoping, NonDirParent, "." that is a symlink (CVE-2021-29136)
//	                               TestUnpackStaysInside, TestUnpackRefuses
//	umoci: ParentDir, Whiteout (also Nested, MissingDirs), OpaqueWhiteout, IsDirlink
//	                               TestUnpackLayers, TestWhiteoutsOverSeveralLayers, TestWhiteoutKeepsItsDirectory
//	umoci: Hardlink                TestHardLinksAcrossLayers
//	umoci: setuid, setcap, mknod, xattr filters, masked SELinux labels
//	                               TestUnpackPolicy, TestUpperDirectoryReplacesAttributes
//	umoci: mixed compression       package source, TestLayersAreVerified
//	storage: UntarInvalidFilenames, InvalidHardlink, InvalidSymlink, ApplyDotDotFile, MaliciousSymlinks
//	                               TestUnpackStaysInside
//	storage: UntarHardlinkToSymlink
//	                               TestHardLinksAcrossLayers
//	storage: TypeXGlobalHeader, UstarGnuConflict, Timestamp, TarUntarWithXattr, BlockCharFifo
//	                               TestPaxHeaders, TestArchivesOfTar, TestUnpackPolicy
//	storage: ApplyLayerWhiteouts, OverlayTarAUFSUntar
//	                               TestUnpackLayers
//
// TestSamplesAreThoseOfUmoci compares the trees; the samples say where they differ, and why. umoci's MapRootless and
// UnpackEntryMap have no counterpart: a jail's owners are those of the image.
//
// It requires root. A failed or killed child leaves a half-filled target, which the caller removes.
package unpack
