# SPDX-License-Identifier: GPL-2.0-only
"""xrds-perf between two nodes: resets under load, keys for one use, an abort; and
the check list for a new adapter.
"""

import pathlib
import re

import remote
import traffic

PAGE = pathlib.Path(__file__).parents[2] / "Documentation/hardware.rst"
TIMEOUT = 180
ERROR = 2
SECONDS = 4
RUNS = 5                    # at most, until there were resets


def _server(rig) -> None:
    rig.b.start(f"xrds-perf -s {rig.b.ip}").expect("ready")


def test_reset(rig):
    """The connection is reset under load. Nothing is lost or wrong, and RDMA ops
    that were under way are repeated.
    """
    _server(rig)
    seconds = SECONDS * rig.kernel.slow
    for options in ("-l 16K -d 8", "-m stream -l 64K",
                    "-m write -q -l 64K -d 8", "-m read -q -N -l 64K -d 8"):
        before, resets = remote.counter(rig.a, "conn_reset"), 0
        for _ in range(RUNS):
            rig.a.run(f"xrds-perf -v -R 0.3 -t {seconds} {options} {rig.b.ip}",
                      timeout=60)
            resets = remote.counter(rig.a, "conn_reset") - before
            if resets >= 2:
                break
        rig.diag(f"{options}: {resets} resets")
        rig.check(resets >= 2, f"{options}: {resets} resets")


def test_use_once(rig):
    """Each op has a key of its own, which ends with it."""
    traffic.patient(rig)
    _server(rig)
    for options in ("-m write", "-m read -g", "-m write -N -L 3"):
        rig.a.run(f"xrds-perf -v -U -l 20000 -d 8 -n 80 {options} {rig.b.ip}",
                  timeout=60)
    load = rig.a.start(f"xrds-perf -U -m write -d 8 -t {TIMEOUT} {rig.b.ip}")
    load.expect(r"^ *\d+ s: [1-9]")
    # a work item frees them; keys that stay become more and more
    remote.until(rig, lambda: remote.counter(rig.b, "used_keys") <= 8,
                 "no more keys than ops")
    rig.check(load.code is None, f"the load has ended: {load.out}")


def test_abort(rig):
    """A client ends in the midst of operation: its server's child ends, others
    are served.
    """
    traffic.patient(rig)
    _server(rig)
    other = rig.a.start(f"xrds-perf -v -d 4 -t {2 * SECONDS} {rig.b.ip}")
    done = rig.a.run(f"xrds-perf -A 1 -t {TIMEOUT} -m write -l 64K -d 8 -T 2 "
                     f"{rig.b.ip}", check=False, timeout=60)
    rig.check(done.code == ERROR and "aborted" in done.out, str(done))
    remote.until(rig, lambda: not remote.counter(rig.b, "used_keys"),
                 "its keys end")
    other.wait(60)


def _commands(text: str) -> list[list[str]]:
    """The lines of each block of commands in the page's check list."""
    page = text[text.index("A new adapter\n"):]
    blocks = re.findall(r"code-block:: sh\n\n((?:\t.*\n)+)", page)
    return [[line.strip() for line in block.splitlines()] for block in blocks]


def test_checklist(rig):
    """The commands of Documentation/hardware.rst for a new adapter, xrds-ping and
    xrds-perf, as they are but for their time, end well on a device without faults.
    """
    traffic.patient(rig)
    there, here, search, resets = _commands(PAGE.read_text(encoding="utf-8"))
    peer = rig.b.ip
    for line in there:
        rig.b.start(line.removesuffix(" &").replace("$PEER", peer))
    remote.until(rig, lambda: len(remote.shown(rig.b, "sockets")) == 2,
                 "both servers are there")
    for line in here:
        rig.a.run(line.replace("$PEER", peer).replace("-t 10", "-t 1"),
                  timeout=60)
    for node in rig.nodes:
        found = node.run(search[0], check=False)
        rig.check(found.code == 1 and not found.out, str(found))
    for line in resets:
        rig.a.run(line.replace("$PEER", peer).replace("-t 10", "-t 3"),
                  timeout=60)
