# SPDX-License-Identifier: GPL-2.0-only
"""To cancel the messages to one destination costs these, and no others.

CANCEL_OTHERS in the environment is the number of messages of others that are
queued on the same connection.
"""

import os

import traffic

TIMEOUT = 240
MEMORY = 1536               # MiB; for a million messages
OTHERS = int(os.environ.get("CANCEL_OTHERS", "1000000"))
PORT = 4900


def test_cancel(rig):
    """Among a million messages to a node that is away."""
    rig.b.cut()
    rig.a.write("/proc/sys/net/xrds/max_memory_kb", str(1400 << 10))
    out = rig.a.run(f"helper_cancel {rig.a.ip} {rig.b.ip} {PORT} "
                    f"{traffic.fewer(rig, OTHERS)}", timeout=200,
                    check=False)
    rig.diag("; ".join(out.out.splitlines()))
    rig.check(not out.code, out.out)
