# SPDX-License-Identifier: GPL-2.0-only
"""A peer that was killed and comes back is a new one, and welcome."""

import traffic

TIMEOUT = 240


def test_reboot(rig):
    """Traffic works again, both ways, without anything done here."""
    traffic.run(rig, 500)
    rig.b.reboot()
    rig.b.run("modprobe xrds_ib")
    rig.a.run(f"xrds-ping -c 3 -i 0.2 -w 60 {rig.b.ip}", timeout=70)
    rig.b.run(f"xrds-ping -c 3 -i 0.2 -w 60 {rig.a.ip}", timeout=70)
    traffic.run(rig, 500, seed=2)


def test_reboot_with_queue(rig):
    """With messages queued for the one that died: they harm nobody."""
    holder = rig.a.start(f"test_hold {rig.a.ip} {rig.b.ip} 0 5000")
    holder.expect("holding")
    rig.b.reboot()
    rig.b.run("modprobe xrds_ib")
    rig.check(holder.code is None, "the holder ended")
    traffic.run(rig, 500, seed=3, port=6000)
    holder.kill()
    traffic.run(rig, 500, seed=4, port=7000)
