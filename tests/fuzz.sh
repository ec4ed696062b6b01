#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# fuzz.sh TIME: runs each fuzz test of the repository for that long. An input that fails is below testdata/fuzz then: mend the fault, and commit
# the input, which each go test tries from then on. Go's fuzzer itself ends at times on a busy machine, without such an input: that is told, and is no failure.
set -euo pipefail
time=${1:?usage: fuzz.sh TIME}
failed=0

# sources TEST...: the files of the repository for which find's tests hold. Below build are the roots of other systems, which change at any time.
sources() { find . -path ./build -prune -o -type f "$@" -print; }

# inputs: those that fuzz tests have found.
inputs() { sources -path '*/testdata/fuzz/*' | sort; }

for package in $(sources -name '*_test.go' | xargs grep -l '^func Fuzz' | xargs -n 1 dirname | sort -u); do
	for fuzz in $(sed -n 's/^func \(Fuzz[A-Za-z0-9]*\)(.*/\1/p' "$package"/*_test.go | sort); do
		echo "== $package $fuzz"
		before=$(inputs)
		go test -run '^$' -fuzz "^$fuzz\$" -fuzztime "$time" -fuzzminimizetime=1x "$package" && continue
		if [ "$(inputs)" != "$before" ] || ! go test -count=1 -run "^$fuzz\$" "$package"; then
			failed=1
		else
			echo "== $package $fuzz ended by itself, without an input that fails"
		fi
	done
done
exit "$failed"
