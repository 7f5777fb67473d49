# SPDX-License-Identifier: GPL-2.0-only
"""Link-local addresses: messages come with the scope that an answer needs."""

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
