# SPDX-License-Identifier: GPL-2.0-only
"""Link-local addresses: messages come with the scope that an answer needs, and
to an address of another scope none is lost: it is refused."""

import remote

TIMEOUT = 120
PORT = 4600
DEVICE = "eth0"


def _address(node) -> str:
    show = f"ip -6 addr show dev {DEVICE} scope link"
    node.wait_for(f"{show} | grep -q fe80::")
    return str(node.run(f"{show} | grep -o 'fe80::[0-9a-f:]*'"))


def test_linklocal(rig):
    """An answer to the address that recvmsg() gave reaches the sender."""
    here, there = _address(rig.a), _address(rig.b)
    server = rig.b.start(f"helper_linklocal serve {DEVICE} {there} {PORT}")
    server.expect("ready")
    rig.a.run(f"helper_linklocal ask {DEVICE} {here} {there} {PORT}")
    server.wait()


def test_mixed(rig):
    """Between a link-local and another address, or two interfaces: an error."""
    a, b = rig.a, rig.b
    here, there = _address(a), _address(b)
    for local, remote, error in ((a.ip6, there, "EOPNOTSUPP"),
                                 (here, b.ip6, "EOPNOTSUPP"),
                                 (here, there, "EINVAL")):
        rig.diag(f"{local} to {remote}: {error}")
        a.run(f"helper_linklocal refuse {DEVICE} {local} {remote} {error}")


def test_ipv4(rig):
    """Link-local addresses of IPv4 have no scope: they mix with all others."""
    a, b = rig.a, rig.b
    for node in (a, b):
        node.run(f"ip addr add 169.254.7.{node.number}/24 dev {DEVICE}")
        remote.wait_bound(node, f"169.254.7.{node.number}")
    try:
        a.run("xrds-ping -c 1 -w 30 169.254.7.2", timeout=40)
        a.run(f"xrds-ping -c 1 -w 30 -I 169.254.7.1 {b.ip}", timeout=40)
        # messages that wait there for an acknowledgment stay when it goes
        for node in (a, b):
            node.run("settled 20", timeout=60)
    finally:
        for node in (a, b):
            node.run(f"ip addr del 169.254.7.{node.number}/24 dev {DEVICE}")
