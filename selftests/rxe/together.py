# SPDX-License-Identifier: GPL-2.0-only
"""Hostile programs and a hostile peer at once, and two friendly nodes.

On node A helper_fuzz makes random calls, toward B, C and A itself; node B runs
xrds_hostile and does all kinds of harm to A; and A and C exchange messages, each
of them checked. None of these is lost, resources of A stay within their bounds,
the programs can be killed at any time in a second (helper_fuzz sees to that),
and in the end nothing is left.

TOGETHER_SECONDS=1800 is the long run; TOGETHER_SEED chooses another one.
"""

import itertools
import os

import close
import hostile
import traffic
from xrdsvm.node import stopwatch

SECONDS = int(os.environ.get("TOGETHER_SECONDS", "12"))
SEED = int(os.environ.get("TOGETHER_SEED", "1"))
NODES = 3
MODULES = ("xrds_ib", "xrds_hostile", "xrds_ib")
TIMEOUT = 300 + 3 * SECONDS
PATIENCE = TIMEOUT / 2      # with the programs, to tell of those that hang
PORT = 6000                 # where nobody else sends to
INJECT = ". /xrds/selftests/lib/inject.sh; " \
         "[ ! -d $FAULTS/failslab ] || inject_quiet"
# the modes of B in turn, and packets of each
DEEDS = (("xrds", 60), ("storm", 40), ("classic", 60), ("brief", 10),
         ("pretend", 3), ("maps", 200), ("flood", 60))
# counter, sysctl that bounds it, and the unit of that
BOUNDS = (("used_memory", "max_memory_kb", 1024),
          ("used_pinned", "max_pinned_kb", 1024),
          ("used_keys", "max_keys", 1),
          ("used_connections", "max_connections", 1),
          ("used_recv", "max_recv_kb", 2048))
# of A, so that they may be reached
LOWERED = (("sock_max_recv_kb", 4096), ("max_memory_kb", 64 * 1024),
           ("max_pinned_kb", 32 * 1024), ("max_keys", 2000),
           ("max_connections", 2000), ("max_recv_kb", 16 * 1024))


class _Memory:
    """Objects of node A, now and at worst."""

    def __init__(self, rig) -> None:
        self._rig = rig
        self._most = dict.fromkeys((name for name, _, _ in BOUNDS), 0)
        self._bounds = {
            name: unit * int(rig.a.read(f"{hostile.SYSCTL}/{sysctl}"))
            for name, sysctl, unit in BOUNDS}
        # packets under way when it was half of that come in any case
        self._bounds["used_recv"] += self._bounds["used_memory"]
        self._before = self._read()
        self._least = self._before["MemAvailable"]

    def _read(self) -> dict[str, int]:
        lines = self._rig.a.read("/proc/meminfo").splitlines()
        return {line.split(":")[0]: int(line.split()[1]) for line in lines}

    def look(self) -> None:
        """All of it within the bounds."""
        counters = close.counters(self._rig.a)
        for name, bound in self._bounds.items():
            self._most[name] = max(self._most[name], counters[name])
            self._rig.check(counters[name] <= bound,
                            f"{name} is {counters[name]}, bound {bound}")
        now = self._read()
        self._least = min(self._least, now["MemAvailable"])
        self._rig.check(now["MemAvailable"] > now["MemTotal"] // 16,
                        f"{now['MemAvailable']} kB are left")

    def _is_back(self) -> bool:
        """Caches of the kernel's own keep some of it."""
        now, some = self._read(), self._before["MemTotal"] // 8
        return (now["MemAvailable"] > self._before["MemAvailable"] - some and
                now["Slab"] < self._before["Slab"] + some)

    def end(self) -> None:
        """All objects have been given back."""
        now = self._read()
        self._rig.diag(", ".join(
            f"{name} {most} of {self._bounds[name]}"
            for name, most in self._most.items()))
        self._rig.diag(
            f"kB: {self._least} available at worst; " + ", ".join(
                f"{name} {self._before[name]}, then {now[name]}"
                for name in ("MemAvailable", "Slab")))
        self._rig.check(self._is_back(), "memory is not back")


def _namespaces(rig, mode: str) -> None:
    """Sets whether network namespaces share RDMA devices. If they do the RDMA
    core gives each of them thousands of files in sysfs for each device: a debug
    kernel needs seconds to make them, and a process that is killed waits for
    that. The programs' namespaces have no network and no use for a device.
    """
    # refused while there is any but the first, and they go after their processes
    rig.a.wait_for(f"rdma system set netns {mode}", timeout=120)


def _exchange(pair, seed: int) -> None:
    traffic.run(pair, 60, timeout=200, seed=seed, stall=150, port=PORT,
                extra="-m 65536")


def _programs(rig):
    """The hostile programs, and the sign that they are there."""
    others = f"{rig.nodes[2].ip},{rig.b.ip}"
    proc = rig.a.start(f"{INJECT}; FUZZ_COMPANY=1 FUZZ_SEED={SEED} "
                       f"FUZZ_SECONDS={SECONDS} FUZZ_HOSTS={others} "
                       f"helper_fuzz -a {rig.a.ip}")
    proc.expect("TAP version")
    return proc


def _deeds(rig):
    """The modes of B, one after the other, each time with other packets."""
    for number, (kind, count) in enumerate(itertools.cycle(DEEDS)):
        yield hostile.order(rig, kind, max(1, int(count / rig.kernel.slow)),
                            seed=SEED + number, tos=8 * (number % 2),
                            other=rig.nodes[2].ip if kind == "pretend" else "")


def test_together(rig):
    """Everything at once."""
    rig.diag(f"TOGETHER_SEED={SEED} TOGETHER_SECONDS={SECONDS}")
    for name, value in LOWERED:
        rig.a.write(f"{hostile.SYSCTL}/{name}", str(value))
    _namespaces(rig, "exclusive")
    rig.a.starved = rig.kernel.name == "debug"
    pair = hostile.bystanders(rig)
    _exchange(pair, 0)
    memory = _Memory(rig)
    passed = stopwatch()
    programs, deeds, rounds, orders = _programs(rig), _deeds(rig), 0, 1
    deed = next(deeds)
    while programs.code is None and passed() < PATIENCE * rig.kernel.slow:
        rounds += 1
        _exchange(pair, rounds)
        memory.look()
        if deed.code is not None:
            deed.wait()
            deed, orders = next(deeds), orders + 1
    rig.diag(programs.wait(120, check=False).out)
    rig.check(programs.code == 0, "see what helper_fuzz says")
    deed.wait(120)
    rig.diag(f"{passed():.0f} s, {orders} deeds of B, {rounds} rounds of "
             "traffic between A and C")
    hostile.reform(rig)
    memory.end()
    _namespaces(rig, "shared")
