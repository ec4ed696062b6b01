#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# fuzz.sh TIME: runs each fuzz test of the repository for that long.
set -euo pipefail
time=${1:?fuzz.sh TIME}
for package in $(go list ./...); do
	for fuzz in $(go test -list '^Fuzz' "$package" | grep '^Fuzz' || true); do
		echo "== $package $fuzz"
		go test -run '^$' -fuzz "^$fuzz\$" -fuzztime "$time" -fuzzminimizetime=1x "$package"
	done
done
