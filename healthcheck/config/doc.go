// SPDX-License-Identifier: Apache-2.0

// Package config reads health.toml. Errors are one line that names the line of the file.
package config
