# SPDX-License-Identifier: GPL-2.0-only
"""A peer that was killed and comes back is a new one, and welcome."""

import remote
import traffic

TIMEOUT = 240
REBOOTS = True


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
    holder = rig.a.start(f"helper_hold_socket {rig.a.ip} {rig.b.ip} 0 5000")
    holder.expect("holding [1-9]")
    rig.b.reboot()
    rig.b.run("modprobe xrds_ib")
    rig.check(holder.code is None, "the holder ended")
    # what is queued before the nodes have met is for the one that died
    rig.a.run(f"xrds-ping -c 1 -w 60 {rig.b.ip}", timeout=70)
    traffic.run(rig, 500, seed=3, port=6000)
    holder.kill()
    traffic.run(rig, 500, seed=4, port=7000)


def test_reboot_old_messages(rig):
    """A message queued for a socket that died does not reach its successor."""
    traffic.run(rig, 100)
    rig.b.cut()
    holder = rig.a.start(f"helper_hold_socket {rig.a.ip} {rig.b.ip} 20 6000")
    holder.expect("holding 20")
    rig.b.reboot()
    rig.b.run("modprobe xrds_ib")
    sink = rig.b.start(f"helper_late_reader {rig.b.ip} 6000 1000000")
    sink.expect("ready")
    remote.wait_above(rig.a, "send_drop_stale_peer", 19)
    rig.check(remote.counter(rig.a, "send_drop_stale_peer") == 20,
              "others were dropped as well")
    rig.a.run(f"xrds-ping -c 3 -i 0.2 -w 60 {rig.b.ip}", timeout=70)
    for name in ("recv_queued", "recv_drop_no_sock"):
        rig.check(remote.counter(rig.b, name) == 0, f"{name} is not 0")
    # the same sockets go on with new messages
    new = rig.a.start(f"helper_hold_socket {rig.a.ip} {rig.b.ip} 20 6000")
    new.expect("holding 20")
    remote.wait_above(rig.b, "recv_queued", 19)
    rig.check(remote.counter(rig.b, "recv_queued") == 20,
              "not just what was sent to it")
