# SPDX-License-Identifier: GPL-2.0-only
"""Nodes without IPv6: nothing of theirs reaches it, and IPv4 works."""

import remote
import traffic

TIMEOUT = 180
SILENT = 1                  # xrds-ping's status, without an answer
OFF = "/proc/sys/net/ipv6/conf/eth0/disable_ipv6"
PORT = 4700
TABLES = ("connections", "counters", "destinations", "devices", "features",
          "marks", "messages", "nodes", "regions", "sockets", "status")


def _ipv4(rig) -> None:
    """Messages and ops both ways, over RDMA."""
    traffic.patient(rig)
    traffic.run(rig, 500, seed=31)
    remote.run(rig, "helper_rdma smoke")


def _peer_asks(rig) -> None:
    """A peer with IPv6 sends to the address that the node would have: nobody
    answers.
    """
    dialled = remote.counter(rig.b, "conn_dial")
    done = rig.b.run("xrds-ping -c 1 -w 1 -I fd00::2 fd00::1", check=False)
    rig.check(done.code == SILENT, f"exit {done.code}: {done.out}")
    remote.wait_above(rig.b, "conn_dial", dialled)


def _administer(rig) -> None:
    """Node events, and the tables and orders of netlink."""
    watch = rig.a.start(f"helper_node_events {rig.a.ip} {rig.b.ip} {PORT} 1 1")
    watch.expect("watching")
    rig.b.cut()
    watch.expect(f"{rig.b.ip} port 0 down", 60)
    rig.b.join()
    watch.expect(f"{rig.b.ip} port 0 up", 60)
    rows = {table: remote.shown(rig.a, table) for table in TABLES}
    rig.check([row["faddr"] for row in rows["nodes"]] == [rig.b.ip], str(rows))
    watch.kill()
    watch.wait(check=False)
    rig.a.run("xrds-info drain")
    done = rig.a.run(f"xrds-ping -c 1 -w 1 {rig.b.ip}", check=False)
    rig.check(done.code == SILENT, f"drained: {done.out}")
    rig.a.run("xrds-info undrain")
    rig.a.run(f"xrds-ping -c 1 -w 30 {rig.b.ip}", timeout=40)


def test_disabled(rig):
    """Booted with ipv6.disable=1, the whole node."""
    rig.a.run("test ! -e /proc/sys/net/ipv6")
    rig.diag(rig.a.run(f"helper_no_ipv6 -a {rig.a.ip}", timeout=90).out)
    _peer_asks(rig)
    _administer(rig)
    _ipv4(rig)


test_disabled.boot = ("ipv6.disable=1", "")
test_disabled.leaves = "messages"


def test_disabled_both(rig):
    """Neither node has IPv6: they connect all the same."""
    _ipv4(rig)


test_disabled_both.boot = "ipv6.disable=1"


def test_switched_off(rig):
    """The interface has IPv6 switched off, lo has not."""
    rig.a.write(OFF, "1")
    try:
        rig.diag(rig.a.run(f"helper_no_ipv6 -a {rig.a.ip}", timeout=90).out)
        rig.a.write(OFF, "1")
        _peer_asks(rig)
        _ipv4(rig)
    finally:
        rig.a.run(f"echo 0 > {OFF} && "
                  "ip addr add fd00::1/64 dev eth0 nodad && "
                  "ip neigh replace fd00::2 lladdr 52:54:00:78:72:02 "
                  "dev eth0 nud permanent")
    remote.wait_bound(rig.a, rig.a.ip6)
    rig.a.run(f"xrds-ping -c 1 -w 30 {rig.b.ip6}", timeout=40)


test_switched_off.leaves = "messages"
