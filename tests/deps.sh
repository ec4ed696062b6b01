#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Installs the Debian packages that building and testing gojail need; quick and
# silent when all of them are there. Starts none of their services. Arguments are
# further packages, which few tests need.
set -euo pipefail

packages=(gcc make libc6-dev libslurm-dev libpmix-dev slurmctld slurmd slurm-client munge mmdebstrap bubblewrap util-linux bsdutils xauth debian-archive-keyring
	slurmdbd mariadb-server-core mariadb-client-core e2fsprogs xfsprogs btrfs-progs squashfs-tools erofs-utils xz-utils
	openssh-server openssh-client rsync libpam-slurm-adopt pamtester
	autofs bindfs busybox-static strace prometheus prometheus-node-exporter iproute2
	shellcheck clang-format codespell lintian rpm rpmlint man-db mandoc fish zsh "$@")
missing=()
for package in "${packages[@]}"; do
	if [ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null)" != installed ]; then
		missing+=("$package")
	fi
done

if [ ${#missing[@]} -gt 0 ]; then
	if [ "$(id -u)" != 0 ]; then
		echo "deps: as root: apt-get install ${missing[*]}" >&2
		exit 1
	fi
	echo "installing ${missing[*]}"
	if [ ! -e /usr/sbin/policy-rc.d ]; then
		# The tests start their own daemons; the machine's stay as they are (invoke-rc.d(8)).
		trap 'rm -f /usr/sbin/policy-rc.d' EXIT
		printf '#!/bin/sh\nexit 101\n' >/usr/sbin/policy-rc.d
		chmod 755 /usr/sbin/policy-rc.d
	fi
	log=$(mktemp)
	export DEBIAN_FRONTEND=noninteractive
	install=(apt-get -o DPkg::Lock::Timeout=120 install -y --no-remove --no-install-recommends "${missing[@]}")
	if ! { "${install[@]}" || { apt-get update && "${install[@]}"; }; } >"$log" 2>&1 </dev/null; then
		tail -20 "$log" >&2
		echo "deps: apt-get could not install ${missing[*]} (whole log: $log)" >&2
		exit 1
	fi
	rm -f "$log"
fi

if ! command -v go >/dev/null; then
	echo "deps: Go is missing: install the release that go.mod names (go.dev/dl) and put it into PATH" >&2
	exit 1
fi
wanted=$(sed -n 's/^go //p' "$(dirname "$0")/../go.mod")
# From 1.21 on, an older Go fetches the one that is wanted.
if ! go version | grep -Eq 'go(1\.(2[1-9]|[3-9][0-9])|[2-9])'; then
	echo "deps: $(go version) is too old: install Go $wanted or newer (go.dev/dl) and put it into PATH before the other" >&2
	exit 1
fi
