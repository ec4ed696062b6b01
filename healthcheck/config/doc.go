// SPDX-License-Identifier: Apache-2.0

// Package config loads health.toml. Each error is one line that names the line of the file.
package config
