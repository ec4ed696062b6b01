// SPDX-License-Identifier: Apache-2.0

// Package source opens the sources of jails: OCI layouts, archives of podman and docker, registries, directories, tar
// files and trees of mmdebstrap. Each becomes a list of layers, which are tar streams.
//
// No document of a source is trusted. The manifest must have the digest that was asked for, the configuration and the
// layers must have those of the manifest, and the content of a layer the DiffID of the configuration. A stream that
// fails one of these checks ends with an error after its last byte, so a reader keeps none of it before that. Layers
// with foreign URLs and encrypted layers are refused.
//
// go-containerregistry is used to talk to registries, and for the types of the OCI image specification. Its Extract is
// not used: it gets hard links across layers wrong.
package source
