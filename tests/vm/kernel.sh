# SPDX-License-Identifier: Apache-2.0
#
# Sourced: which kernel the VM boots. $1, or else GOJAIL_KERNEL, names it. Sets
#   kernel          6.1, 6.12 (the default), newest, or 16k: for arm64 alone, with pages of 16 KiB
#   kernel_suite    the Debian suite that has it
#   kernel_package  its name there
kernel=${1:-${GOJAIL_KERNEL:-6.12}}
case $kernel in
6.1) kernel_suite=bookworm ;;
6.12) kernel_suite=trixie ;;
newest) kernel_suite=forky ;;
16k) kernel_suite=trixie ;;
*) echo "$0: the kernel $kernel is none of 6.1, 6.12, newest, 16k" >&2; exit 2 ;;
esac
kernel_package=linux-image-${architecture:?}
[ "$kernel" != 16k ] || kernel_package+=-16k
