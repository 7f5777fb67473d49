# SPDX-License-Identifier: GPL-2.0-only
"""Raw verbs from user space: perftest's programs, where they start.

They wait for completions in the kernel (-e): with both ends on one processor,
one that polls takes the other's time. ib_send_lat polls for its sends all the
same: where soft-RoCE works in a work queue, a round trip takes time slices.
"""

import re

from .cases import PERFTEST, Case
from .node import Failed

PROGRAMS = ("ib_send_lat", "ib_send_bw", "ib_read_bw")
FILES = ("/etc/libibverbs.d/rxe.driver",
         "/usr/lib/x86_64-linux-gnu/libibverbs/librxe-rdmav34.so")
PROGRAM_OF = {"echo": "ib_send_lat", "stream": "ib_send_bw",
              "read": "ib_read_bw"}
REPEATS = 2                 # they take long to start
MIN_COUNT = 200             # of them
FAR = "10.7.0.2"
GID = {"rxa": "0a07:0001", "rxb": "0a07:0002"}
PORT = 18515                # of their own
SECONDS = 300
TURN_SECONDS = 5            # of the node: hundreds of times what is needed
LATE = 124                  # the exit status of timeout


class _TooSlow(Failed):
    """A time far beyond soft-RoCE's: it measures something else."""


def run(bench, chosen: list[Case]) -> None:
    """Keeps a figure of each case in the bench."""
    if chosen:
        bench.node.run("modprobe -a ib_uverbs rdma_ucm")
    for case in chosen:
        bench.attempt(PERFTEST, case, _one, bench)


def _one(stack: str, case: Case, bench) -> None:
    from .bench import Figure
    try:
        values = [_once(bench.node, case) for _ in range(REPEATS)]
    except _TooSlow as error:
        bench.leave_out(stack, case, str(error))
    else:
        bench.keep(stack, case, Figure(values))


def _once(node, case: Case) -> float:
    """Nanoseconds of a message."""
    program = PROGRAM_OF[case.mode]
    command = f"{program} -F -e -s {case.bytes} -n {max(case.count, MIN_COUNT)}"
    server = node.start(f"{command} {_device(node, 'rxb')}")
    node.wait_for(f"ss -ltn | grep -q :{PORT}")
    client = node.run(f"timeout {TURN_SECONDS} {command} "
                      f"{_device(node, 'rxa')} {FAR}", SECONDS, check=False)
    if client.code:
        server.kill()
    server.wait(SECONDS, check=not client.code)
    if client.code == LATE:
        raise _TooSlow(f"not done after {TURN_SECONDS} s")
    return _time(client.out, case)


def _device(node, name: str) -> str:
    found = node.run(f"cd /sys/class/infiniband/{name}/ports/1/gids && "
                     f"grep -l ffff:{GID[name]} *").out.split()
    if not found:
        raise Failed(f"no GID of {name}")
    return f"-d {name} -x {found[0]}"


def _time(out: str, case: Case) -> float:
    found = re.search(rf"^ *{case.bytes} +(\d.*)$", out, re.MULTILINE)
    if not found:
        raise Failed(f"no figures in\n{out}")
    words = found.group(1).split()
    if case.mode == "echo":
        return 2000 * float(words[4])       # the mean of half a round trip, us
    return 1000 / float(words[3])           # millions a second
