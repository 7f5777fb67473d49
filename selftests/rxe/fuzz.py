# SPDX-License-Identifier: GPL-2.0-only
"""Random calls, as in loop/fuzz, where the node talks to itself over RDMA.

FUZZ_SECONDS says how long, FUZZ_SEED which calls.
"""

import os

SECONDS = int(os.environ.get("FUZZ_SECONDS", "4"))
SEED = int(os.environ.get("FUZZ_SEED", "1"))
NODES = 1
TIMEOUT = 180 + 3 * SECONDS
INJECT = ". /xrds/selftests/lib/inject.sh; " \
         "[ ! -d $FAULTS/failslab ] || inject_quiet"


def test_fuzz(rig):
    """By processes of several users, beside two bystanders."""
    rig.a.starved = rig.kernel.name == "debug"
    out = rig.a.run(f"{INJECT}; FUZZ_SEED={SEED} FUZZ_SECONDS={SECONDS} "
                    f"helper_fuzz -a {rig.a.ip}", timeout=TIMEOUT).out
    rig.diag(out)
