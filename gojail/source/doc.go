// SPDX-License-Identifier: Apache-2.0

// Package source opens what a jail is built from: OCI layouts, archives of podman and docker, registries, directories,
// tar files and the tree that mmdebstrap makes. Each becomes a list of layers, which are tar streams.
//
// No document of a source is trusted: the manifest must have the digest that was asked for, the configuration and the
// layers those of the manifest, and the content of a layer the DiffID of the configuration. A stream that fails one of
// these ends with an error after its last byte, so a reader keeps nothing of it until then. Layers with foreign URLs
// and encrypted ones are refused.
//
// go-containerregistry is used to talk to registries, and for the types of the OCI image specification. Its Extract
// is not: it gets hard links across layers wrong.
package source
