# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0-only
#
# Functions of all checks. Each check prints findings, and is silent otherwise.

set -eu

TOP=$(cd "$(dirname "$0")/../.." && pwd)
export CACHE="${XRDS_CACHE:-$HOME/.cache/xrds}"
cd "$TOP"

# our_files PATTERN...: tracked files and new ones, not what is ignored
our_files() {
	git ls-files --cached --others --exclude-standard -- "$@" |
	while read -r file; do
		[ ! -f "$file" ] || echo "$file"
	done
}

# default_kdir: the newest Debian headers of the default kernel
default_kdir() {
	dir=$(find /usr/src -maxdepth 1 -name 'linux-headers-6.1.*-amd64' |
	      sort -V | tail -n 1)
	echo "${KDIR:-$dir}"
}
