#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# deps.sh GROUP...: install the Debian packages of these groups that are
# missing. Silent and quick when there is nothing to do. Does nothing without
# apt-get.
#
#   build  compiler and headers of the default kernel
#   unit   build, and compilers for the unit tests and the fuzz target
#   rig    build, and programs that boot nodes; the rig adds packages of tests
#   rpm    compiler of the tools, and rpmbuild
#   deb    programs that build and check Debian packages
#   check  build, and programs of the style, sparse and doc checks
set -eu

# elsewhere a missing program shows when it is called
command -v apt-get > /dev/null || exit 0

build="make gcc libc6-dev perl linux-headers-amd64 util-linux"
unit="$build python3 g++ clang libclang-rt-14-dev libmnl-dev"
rig="$build python3 qemu-system-x86 busybox-static kmod iproute2 libmnl-dev"
bench="$rig gnuplot-nox perftest ibverbs-providers"
check="$build git python3 python3-yaml sparse shellcheck codespell mandoc xz-utils"
rpm="make gcc libc6-dev git libmnl-dev rpm"
deb="build-essential git libmnl-dev dpkg-dev debhelper dh-dkms lintian"

check="$check man-db python3-docutils"
wanted=
for group in "$@"; do
	case $group in
	build) wanted="$wanted $build" ;;
	unit) wanted="$wanted $unit" ;;
	rig) wanted="$wanted $rig" ;;
	deb) wanted="$wanted $deb" ;;
	rpm) wanted="$wanted $rpm" ;;
	check) wanted="$wanted $check" ;;
	bench) wanted="$wanted $bench" ;;
	*) wanted="$wanted $group" ;;	# a package by name
	esac
done

missing=
for package in $wanted; do
	case " $missing " in *" $package "*) continue ;; esac
	state=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || :)
	[ "$state" = installed ] || missing="$missing $package"
done
[ -n "$missing" ] || exit 0

if [ "$(id -u)" != 0 ]; then
	echo "Missing packages, and only root can install them:$missing" >&2
	exit 1
fi

echo "# installing:$missing"
export DEBIAN_FRONTEND=noninteractive
log=$(mktemp)
trap 'rm -f "$log"' EXIT
get() {
	# shellcheck disable=SC2086
	apt-get install -q -y --no-install-recommends $missing > "$log" 2>&1
}
get || { apt-get update -q > /dev/null 2>&1 || :; get; } || {
	tail -n 20 "$log" >&2
	exit 1
}
