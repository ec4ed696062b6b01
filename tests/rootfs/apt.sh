# SPDX-License-Identifier: Apache-2.0
#
# Sourced: how this machine's apt reaches the Debian archive, for roots of any
# suite that never touch the machine's own apt state. Sets
#   machine_suite    this machine's release, bookworm for instance
#   machine_sources  the apt files that name it
#   archive_key      the options of a source line: its signing key
#   archive_uri      the archive
#   apt_options      mmdebstrap options: an empty apt configuration plus how to connect
#   architecture     that of the VM and of the roots that it boots: GOJAIL_ARCH, or else this machine's
#   build            where what is made for it is: build, or build/ARCHITECTURE as make ARCH=... has it
. /etc/os-release
own_architecture=$(dpkg --print-architecture)
architecture=${GOJAIL_ARCH:-$own_architecture}
build=build
[ "$architecture" = "$own_architecture" ] || build=build/$architecture
machine_suite=${VERSION_CODENAME:?this is not a Debian machine: /etc/os-release names no VERSION_CODENAME}

machine_sources=()
for file in /etc/apt/sources.list /etc/apt/sources.list.d/*.list /etc/apt/sources.list.d/*.sources; do
	if [ -e "$file" ] && grep -Eq "(^Suites:(.*[[:space:]])?|^deb[[:space:]].*[[:space:]])$machine_suite([[:space:]]|\$)" "$file"; then
		machine_sources+=("$file")
	fi
done
if [ ${#machine_sources[@]} = 0 ]; then
	echo "$0: no entry for $machine_suite in /etc/apt/sources.list or /etc/apt/sources.list.d" >&2
	exit 1
fi
archive_key=/usr/share/keyrings/debian-archive-keyring.gpg
archive_uri=$(grep -Ehom1 "^URIs:[[:space:]]*[^[:space:]]+|^deb[[:space:]]+(\[[^]]*\][[:space:]]*)?[a-z]+:[^[:space:]]+" "${machine_sources[@]}" | head -1 | grep -Eo '[a-z+]+:[^[:space:]]+$')

apt_options=()
while read -r option; do
	apt_options+=("--aptopt=$option")
done < <(apt-config dump | grep -E '^Acquire::(http|https|Check-|Retries)' || true)
