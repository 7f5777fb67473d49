# SPDX-License-Identifier: GPL-2.0-only
"""An administrator of a cluster finds the faults with the commands of the page.

Of four nodes one has a connection that flaps, one a receiver that is stuck, and one has
died. The commands are those of Documentation/xrds.rst, "Monitoring", as they are.
"""

import pathlib
import re

import remote

PAGE = pathlib.Path(__file__).parents[2] / "Documentation/xrds.rst"
NODES = 4
TIMEOUT = 240
FLAPS = 3
PORT = 4321
ACK_TIMEOUT = "/proc/sys/net/xrds/ib/ack_timeout"


def _commands() -> list[str]:
    """The three of the page, without their comments."""
    text = PAGE.read_text(encoding="utf-8")
    block = re.search(r"Three commands name .*?::\n\n((?: {4}[^\n]*\n)+)", text,
                      re.S)[1]
    lines = [line.partition("#")[0].strip() for line in block.splitlines()]
    return [line for line in lines if line]


def _rows(node, command: str) -> list[str]:
    out = node.run(command, timeout=40).out
    return [line for line in out.splitlines() if re.search(r"10\.0\.0\.", line)]


def _up(rig, peer) -> bool:
    return any(c["faddr"] == peer.ip and c["state"] == "up"
               for c in remote.shown(rig.a, "connections"))


def _flap(rig, node) -> None:
    """Its connection is lost, and made again."""
    node.cut()
    remote.wait_lost(rig.a, node)
    node.join()
    remote.until(rig, lambda: _up(rig, node), f"{node} is back")


def test_trouble(rig):
    """All three are named, and the program that is stuck."""
    flapping, stuck, dead = rig.nodes[1:]
    # a lost connection would free the program that is stuck
    usual = rig.a.read(ACK_TIMEOUT)
    for node in (rig.a, stuck):
        node.write(ACK_TIMEOUT, "20")
    # programs that send to each of them all the time
    for node in (stuck, flapping, dead):
        rig.a.start(f"xrds-ping -q -i 0.2 {node.ip}")
        remote.until(rig, lambda peer=node: _up(rig, peer), f"{node} is up")
        rig.a.write(ACK_TIMEOUT, usual)
    stuck.start(f"helper_late_reader {stuck.ip} {PORT} 65536").expect("ready")
    rig.a.start(f"helper_congested {rig.a.ip} {stuck.ip} {PORT}").expect(
        "blocked", 60)
    for _ in range(FLAPS):
        _flap(rig, flapping)
    dead.kill()
    remote.wait_lost(rig.a, dead)

    commands = _commands()
    rig.check(len(commands) == 3, f"{commands}")
    remote.until(rig, lambda: _rows(rig.a, commands[0]), "a node is down")
    down, connections, congested = (_rows(rig.a, c) for c in commands)
    rig.diag("\n".join([*down, *connections, *congested]))
    rig.check(len(down) == 1 and dead.ip in down[0], f"down: {down}")
    # on a busy machine others may be lost, too
    lost = {line.split()[0]: int(line.split()[2]) for line in connections}
    rig.check(lost[flapping.ip] >= FLAPS, f"{connections}")
    rig.check(lost.keys() == {node.ip for node in rig.nodes[1:]} and
              max(lost, key=lost.get) == flapping.ip, f"{connections}")
    rig.check(len(congested) == 1 and f"{stuck.ip}:{PORT}" in congested[0],
              f"congested: {congested}")
    # there the same command names the program
    there, = _rows(stuck, commands[2])
    rig.check(f"{stuck.ip}:{PORT}" in there and "helper_late_rea/" in there,
              there)


test_trouble.reboots = True
test_trouble.leaves = "messages"
