# SPDX-License-Identifier: GPL-2.0-only
"""No wake-up is lost when a completion meets a barrier that is being armed.

All of it on one node of two processors, over loopback: loop/mark has the same
as a quick test. HUNT_ROUNDS says how often each of the four ways to wait is
tried; 250000 make a million, in a quarter of an hour.
"""

import os
import re

ROUNDS = int(os.environ.get("HUNT_ROUNDS", "500"))
ROUNDS_PER_SECOND = 200     # at the very least
NODES = 1
MODULES = "xrds"
TIMEOUT = 120 + 4 * ROUNDS // ROUNDS_PER_SECOND


def test_lost_wakeups(rig):
    """Random pauses on both sides, so that they meet in every way."""
    out = rig.a.run(f"test_mark -c {ROUNDS} -a 127.0.0.1 -t no_wakeup_lost -v",
                    timeout=TIMEOUT).out
    rig.diag("; ".join(re.findall(r"^#\s*(.*)$", out, re.MULTILINE)))
