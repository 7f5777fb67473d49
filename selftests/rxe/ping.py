# SPDX-License-Identifier: GPL-2.0-only
"""xrds-ping: the kernel of a node answers, and errors are clear."""

import json
import re

TIMEOUT = 90
STATISTICS = re.compile(r"(\d+) sent, (\d+) answered")


def _ping(rig, target: str, options: str = "") -> None:
    out = rig.a.run(f"xrds-ping -c 5 -i 0.2 -w 30 {options} {target}",
                    timeout=40).out
    rig.check(STATISTICS.search(out).groups() == ("5", "5"), out)
    rig.check(out.count("answer from") == 5, out)


def test_ping(rig):
    """Both families, and the node itself."""
    for target in (rig.b.ip, rig.b.ip6, rig.a.ip, rig.a.ip6):
        _ping(rig, target)
    _ping(rig, rig.b.ip, f"-I {rig.a.ip}")


def test_flood(rig):
    """As fast as answers come."""
    out = rig.a.run(f"xrds-ping -q -c 2000 -i 0 -w 60 {rig.b.ip}",
                    timeout=70).out
    rig.check("answer from" not in out, out)


def test_no_answer(rig):
    """A node that is not there: no answer, no hang, exit status 1."""
    done = rig.a.run("xrds-ping -c 3 -i 0.2 -w 3 10.0.0.99", check=False)
    rig.check(done.code == 1, f"exit {done.code}\n{done.out}")
    rig.check(" 0 answered" in done.out, done.out)


test_no_answer.leaves = "messages"


def test_errors(rig):
    """Mistakes are named, with exit status 2."""
    for options, words in (("-I 10.0.0.77 10.0.0.2", "no RDMA device has"),
                           ("", "usage"), ("-c 0 10.0.0.2", "count"),
                           ("-I 10.0.0.1 fd00::2", "10.0.0.1")):
        done = rig.a.run(f"xrds-ping {options}", check=False)
        rig.check(done.code == 2, f"{options}: exit {done.code}\n{done.out}")
        rig.check(words in done.out, f"{options}: {done.out}")
    rig.check(rig.a.run("xrds-ping --help").out.startswith("usage"), "help")


def test_options(rig):
    """Sizes up to the largest message, and JSON."""
    for size in (1, 4096, 1048576):
        out = rig.a.run(f"xrds-ping -j -s {size} -c 2 -i 0.1 -w 30 {rig.b.ip}",
                        timeout=40).out
        result = json.loads(out)
        rig.check(result["bytes"] == size and result["answered"] == 2, out)
        rig.check(0 < result["min_ms"] <= result["max_ms"], out)
    done = rig.a.run(f"xrds-ping -s 1048577 {rig.b.ip}", check=False)
    rig.check(done.code == 2 and "is not a size" in done.out, done.out)
