# SPDX-License-Identifier: GPL-2.0-only
"""Nodes and the wire between them, for a test."""

import contextlib
import os
import shutil
import socket
import subprocess
import tempfile
from pathlib import Path

from . import host, image
from .host import BUILD, RigError, make, note
from .kernels import Kernel
from .needs import IB, KMOD, Needs, helpers
from .node import Failed, Node, stopwatch

SOCKET_BUFFER = 1 << 20


class Skip(Exception):
    """A test can not say anything here, and why."""


class Switch:
    """The Ethernet between the nodes (netswitch.c)."""

    def __init__(self, count: int) -> None:
        self._pairs = [socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
                       for _ in range(count)]
        for end in (s for pair in self._pairs for s in pair):
            end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SOCKET_BUFFER)
        fds = [inner.fileno() for inner, _ in self._pairs]
        self._process = host.spawn([image.netswitch(), *fds], pass_fds=fds,
                                   stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, text=True)

    def port(self, number: int) -> tuple[int, str]:
        """A node's end: descriptor and MAC address."""
        return self._pairs[number - 1][1].fileno(), f"52:54:00:78:72:0{number}"

    def drain(self, number: int) -> None:
        """Throw away what lies in front of a node that is not running."""
        outer = self._pairs[number - 1][1]
        try:
            while True:
                outer.recv(1, socket.MSG_DONTWAIT)
        except BlockingIOError:
            pass

    def cut(self, number: int) -> None:
        self._tell(f"cut {number}")

    def join(self, number: int) -> None:
        self._tell(f"join {number}")

    def deaf(self, number: int, on: bool) -> None:
        self._tell(f"{'deaf' if on else 'hear'} {number}")

    def loss(self, number: int, percent: float) -> None:
        self._tell(f"loss {number} {round(percent * 10000)}")

    @contextlib.contextmanager
    def capture(self, path: Path):
        """While this lasts, all frames go to a pcap file as well."""
        self._tell(f"capture {path}")
        try:
            yield
        finally:
            self._tell("capture")
            if self._process.stdout.readline() != "captured\n":
                raise RigError("the switch has not written its capture")

    def _tell(self, line: str) -> None:
        try:
            self._process.stdin.write(line + "\n")
            self._process.stdin.flush()
        except OSError as error:
            raise RigError(f"the switch is gone: {error}") from error

    def close(self) -> None:
        host.reap(self._process)
        self._process.stdin.close()
        self._process.stdout.close()
        for end in (s for pair in self._pairs for s in pair):
            end.close()


class Rig:
    """Booted nodes. Tests get one: rig.nodes, or rig.a, rig.b, ... There are
    so many at first, and at most so many later.
    """

    def __init__(self, kernel: Kernel, count: int, modules: list[Path],
                 virtual_time: bool = False,
                 extras: image.Extras = image.Extras(),
                 shares: tuple[Path, ...] = (), most: int = 0) -> None:
        self.kernel = kernel
        self.directory = _run_directory()
        self.switch = Switch(max(count, most))
        initrd = image.build(kernel, modules, self.directory, extras)
        self._made = [Node(n, kernel, initrd, self.directory, self.switch,
                           count, virtual_time, shares)
                      for n in range(1, max(count, most) + 1)]
        for node in self._made:
            node.objects = {path.stem: path for path in modules}
        self.nodes = self._made[:count]
        self.boot_seconds = 0.0

    def __enter__(self) -> "Rig":
        self._boot(self.nodes)
        return self

    def _boot(self, nodes: list[Node]) -> None:
        elapsed = stopwatch()
        try:
            for node in nodes:
                node.boot()
            for node in nodes:
                node.wait_booted()
        except BaseException:
            self.close()
            raise
        self.boot_seconds = elapsed()

    def grow(self, count: int) -> None:
        """Boot more nodes, up to this number, beside those that run."""
        old, self.nodes = self.nodes, self._made[:count]
        for node in self.nodes:
            node.total = count
        self._boot(self.nodes[len(old):])
        for node in old:
            # others are booted anew before their next test
            if node.alive() and not node.tainted:
                node.run(f"neighbours {node.number} {count}")
                # as on the others; refused while another namespace goes
                node.wait_for("rdma system set netns shared")

    def __exit__(self, *_exception) -> None:
        self.close()

    def close(self) -> None:
        """End all nodes and forget their logs (the runner copied them)."""
        for node in self._made:
            node.shutdown()
        self.switch.close()
        shutil.rmtree(self.directory, ignore_errors=True)

    @property
    def a(self) -> Node:
        return self.nodes[0]

    @property
    def b(self) -> Node:
        return self.nodes[1]

    @staticmethod
    def check(condition, why: str) -> None:
        """Fail the test unless the condition holds."""
        if not condition:
            raise Failed(why)

    @staticmethod
    def skip(why: str) -> None:
        raise Skip(why)

    @staticmethod
    def diag(text: str) -> None:
        """A line of explanation in the test's output."""
        note(text)


def _run_directory() -> Path:
    """A directory of this run; those of runs that were killed go."""
    BUILD.mkdir(exist_ok=True)
    for old in BUILD.glob("run.*"):
        if not Path(f"/proc/{old.name.split('.')[1]}").exists():
            shutil.rmtree(old, ignore_errors=True)
    return Path(tempfile.mkdtemp(prefix=f"run.{os.getpid()}.", dir=BUILD))


def build_modules(kernel: Kernel, top: Path = host.TOP,
                  needs: Needs = Needs()) -> list[Path]:
    """Build XRDS for a kernel, from this tree or a copy: the modules that are
    needed.
    """
    built = top / "build" / kernel.release / "net/xrds"
    only = () if needs.module(IB) else ("CONFIG_XRDS_IB=",)
    _make_for(kernel, "-C", top, "modules", f"KDIR={kernel.kdir}",
              f"KREL={kernel.release}", *only)
    return sorted(path for path in built.rglob("*.ko")
                  if path.stem == "xrds" or needs.module(path.stem)) + \
        _build_helpers(kernel, top, needs)


def _build_helpers(kernel: Kernel, top: Path, needs: Needs) -> list[Path]:
    """Modules of selftests/kmod, built beside ours."""
    wanted = sorted(filter(needs.module, helpers()))
    if not wanted:
        return []
    place = BUILD / kernel.release / "kmod"
    place.mkdir(parents=True, exist_ok=True)
    for path in KMOD.iterdir():
        copy = place / path.name
        if not copy.exists() or copy.read_bytes() != path.read_bytes():
            shutil.copy(path, copy)
    _make_for(kernel, "-C", kernel.kdir, f"M={place}", f"XRDS={top}",
              f"PROBES={top / 'build' / kernel.release}",
              f"WANTED={' '.join(wanted)}", "modules")
    return sorted(path for path in place.glob("*.ko") if path.stem in wanted)


def _make_for(kernel: Kernel, *command) -> None:
    """Call make with the compiler that this kernel needs."""
    if kernel.root:
        from . import sidkernel
        sidkernel.run_in(kernel.root, "make", f"-j{os.cpu_count()}", "-s",
                         *command)
    else:
        make("-s", *command)
