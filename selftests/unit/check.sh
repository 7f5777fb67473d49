#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# Runs the unit tests and compiles the user API header in several ways, as one
# TAP stream. Usage: check.sh BUILD_DIRECTORY [SEED]; CC and INC come from the
# Makefile.

set -u
build=$1
seed=${2-}
log=$build/check.log
failed=0

"$build/unit_wire" ${seed:+"$seed"} > "$build/unit.tap" 2> "$build/unit.err" ||
	failed=1
nr=$(sed -n 's/^1\.\.\([0-9]*\)$/\1/p' "$build/unit.tap")
nr=${nr:-0}
echo "1..$((nr + 4))"
grep -v -e '^TAP version' -e '^1\.\.' "$build/unit.tap"
# a test that killed the program has no line of its own
seen=$(grep -c -E '^(not )?ok ' "$build/unit.tap")
if [ "$seen" -ne "$nr" ] || [ -s "$build/unit.err" ]; then
	sed 's/^/# /' "$build/unit.err"
	failed=1
fi
while [ "$seen" -lt "$nr" ]; do
	seen=$((seen + 1))
	echo "not ok $seen - wire: not run"
done

result() {	# status, text
	nr=$((nr + 1))
	if [ "$1" -eq 0 ]; then
		echo "ok $nr - uapi: $2"
	else
		sed 's/^/# /' "$log"
		echo "not ok $nr - uapi: $2"
		failed=1
	fi
}

uapi() {	# compiler flags
	$CC -std=c99 -pedantic -Wall -Wextra -Werror -fsyntax-only \
		-I"$INC" "$@" uapi.c > "$log" 2>&1
}

uapi
result $? "compiles alone as strict C99, sizes and offsets are right"

printf '#include <linux/xrds.h>\nstruct xrds_barrier b;\n' > "$build/twice.c"
printf '#include <linux/xrds.h>\n' >> "$build/twice.c"
$CC -std=c99 -pedantic -Wall -Wextra -Werror -fsyntax-only -I"$INC" \
	"$build/twice.c" > "$log" 2>&1
result $? "may be included twice"

$CC -x c++ -Wall -Wextra -Werror -fsyntax-only -I"$INC" "$build/twice.c" \
	> "$log" 2>&1
result $? "compiles as C++"

# the kernel's headers of a 64-bit system serve 32 bit as well
arch=$($CC -print-multiarch 2> /dev/null)
if echo 'int x;' | $CC -m32 -x c -fsyntax-only - > /dev/null 2>&1; then
	uapi -m32 ${arch:+-idirafter "/usr/include/$arch"}
	result $? "sizes and offsets are the same on 32 bit"
else
	nr=$((nr + 1))
	echo "ok $nr - uapi: 32 bit # SKIP the compiler has no -m32"
fi
exit $failed
