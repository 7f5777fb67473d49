# SPDX-License-Identifier: GPL-2.0-only
"""Trace points follow a message and an RDMA op from one end to the other."""

import re

TIMEOUT = 120
TRACING = "/sys/kernel/tracing"
PORT = 4444
MAPPED = "::ffff:"


def _on(*nodes) -> None:
    for node in nodes:
        # the tracer of a debug kernel swaps buffers, and events with them
        node.write(f"{TRACING}/current_tracer", "nop")
        node.write(f"{TRACING}/trace", "")
        # the usual clock is each processor's own
        node.write(f"{TRACING}/trace_clock", "mono")
        node.write(f"{TRACING}/events/xrds/enable", "1")


def _off(*nodes) -> list[list[str]]:
    """The events of each node: "name: text" in order."""
    seen = []
    for node in nodes:
        node.write(f"{TRACING}/events/xrds/enable", "0")
        lines = node.read(f"{TRACING}/trace").splitlines()
        seen.append([m[1] for m in (re.search(r": (xrds_\w+: .*)", line)
                                    for line in lines) if m])
    return seen


def _names(lines: list[str], *wanted: str) -> list[str]:
    """The events of these names, in order, each once in a row."""
    names = [line.split(":")[0].removeprefix("xrds_") for line in lines]
    return [n for n in names if n in wanted]


def _perf(rig, options: str, until: str = "") -> None:
    server = rig.b.start(f"xrds-perf -s -p {PORT} {rig.b.ip}")
    server.expect("ready", 20)
    _on(rig.a, rig.b)
    rig.a.run(f"xrds-perf -n 1 -w 0 -p {PORT} {options} {rig.b.ip}",
              timeout=40)
    if until:
        rig.a.wait_for(f"grep -q '{until}' {TRACING}/trace")


def test_message(rig):
    """Queued, posted, done, received, acknowledged."""
    # small messages have no completion each: a later one brings it
    _perf(rig, "-m echo -l 100", "xrds_msg_done: .* len=100 ")
    here, there = _off(rig.a, rig.b)
    mine = [line for line in here if "len=100 " in line]
    rig.diag("\n".join(mine))
    rig.check(_names(mine, "msg_queue", "msg_post")[:2] ==
              ["msg_queue", "msg_post"], f"{mine}")
    rig.check("msg_done" in _names(mine, "msg_done"), f"{mine}")
    rig.check("msg_ack" in _names(mine, "msg_ack"), f"{mine}")
    seq = re.search(r"msg_post: .* seq=(\d+)", "\n".join(mine))[1]
    got = [line for line in there if line.startswith("xrds_msg_rx") and
           f" seq={seq} " in line and "len=100 " in line]
    rig.diag("\n".join(got))
    rig.check(got and got[0].endswith("recv_queued"), f"{there}")
    rig.check(f"[{MAPPED}{rig.a.ip}]" in got[0], f"{got}")


def test_way(rig):
    """xrds-trace tells the same, at both ends."""
    traces = [node.start(f"xrds-trace -c 1 {PORT}") for node in rig.nodes]
    for trace in traces:
        trace.expect("listening", 20)
    server = rig.b.start(f"xrds-perf -s -p {PORT} {rig.b.ip}")
    server.expect("ready", 20)
    rig.a.run(f"xrds-perf -n 1 -w 0 -p {PORT} {rig.b.ip}", timeout=40)
    ways = [str(trace.wait(timeout=20)) for trace in traces]
    rig.diag("\n".join(ways))
    rig.check(re.search(rf"^\[{rig.a.ip}\]:\d+ -> \[{rig.b.ip}\]:{PORT} seq "
                        r"[1-9].*\n +0 us  queued\n +\d+ us  posted\n"
                        r"(.*\n)* +\d+ us  acknowledged", ways[0], re.M),
              ways[0])
    rig.check("received: recv_queued" in ways[1], ways[1])


def test_op(rig):
    """New, posted, done, and the mark behind it."""
    _perf(rig, "-m write -l 4096")
    here, there = _off(rig.a, rig.b)
    ops = [line for line in here if line.startswith("xrds_rop")]
    rig.diag("\n".join(ops))
    rig.check(_names(ops, "rop_new", "rop_post", "rop_done", "rop_hwm")[:4] ==
              ["rop_new", "rop_post", "rop_done", "rop_hwm"], f"{ops}")
    rig.check("write bytes=4096" in ops[0], ops[0])
    rig.check("completed=1 issued=1" in ops[3], ops[3])
    regions = [line for line in there if line.startswith("xrds_mr_")]
    key = re.search(r"rkey=(0x[0-9a-f]+)", ops[0])[1]
    rig.check(any(f"mr_reg: {MAPPED}{rig.b.ip} rkey={key} " in line
                  for line in regions), f"{regions}")


def test_formats(rig):
    """A program that reads recorded events knows none of the kernel's names."""
    names = rig.a.run(f"grep -l XRDS_ {TRACING}/events/xrds/*/format",
                      check=False).out
    rig.check(not names, names)


def test_life(rig):
    """A connection: its events, its states, its references."""
    _on(rig.a, rig.b)
    rig.a.run(f"xrds-ping -c 1 -w 30 {rig.b.ip}", timeout=40)
    here, there = _off(rig.a, rig.b)
    states = [re.search(r" (\S+->\S+)$", line)[1] for line in here
              if line.startswith("xrds_conn_state")]
    rig.diag(f"{states}")
    # the attempt that was taken
    up = states.index("wait-cts->up")
    at = up - states[up::-1].index("down->resolving")
    rig.check(states[at:at + 4] == ["down->resolving", "resolving->connecting",
                                    "connecting->wait-cts", "wait-cts->up"],
              f"{states}")
    rig.check(any("event=established" in line for line in here), f"{here}")
    rig.check(any("event=request" in line for line in there), f"{there}")
    rig.check(any(line.startswith("xrds_credit_g") for line in here), f"{here}")
    rig.check(any(line.startswith("xrds_msg_rx") and line.endswith("recv_ping")
                  for line in there), f"{there}")
    refs = [line for line in here if line.startswith("xrds_ref_")]
    rig.check(any("xrds_ref_get: conn " in line for line in refs) and
              any("xrds_ref_put: conn " in line for line in refs), f"{refs}")
