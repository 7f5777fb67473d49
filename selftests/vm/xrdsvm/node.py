# SPDX-License-Identifier: GPL-2.0-only
"""A node as tests see it: run commands on it, and do evil things to it."""

import dataclasses
import re
import shlex
import signal
import threading
import time
from pathlib import Path

from . import oops, qemu
from .host import RigError, note
from .kernels import Kernel

BOOT_SECONDS = 180
BEGINS = b"node init: begins"
PATIENCE = 5                # times that, in virtual time: it may wait for us
DEVICE_COUNTERS = "/sys/class/infiniband/rxe0/ports/1/hw_counters"

PAGE_KIB = 4
# A line of the console that fails the test in which it appears.
BAD = re.compile(
    r"WARNING:|BUG:|\bOops\b|kernel BUG|Kernel panic|general protection fault|"
    r"possible circular locking|possible recursive locking|"
    r"inconsistent lock state|possible irq lock inversion|"
    r"suspicious RCU usage|held lock freed|lock held when returning|"
    r"blocked for more than \d+ seconds|soft lockup|hard LOCKUP|"
    r"rcu: INFO: .* detected|refcount_t|KASAN|UBSAN|kmemleak: \d+ new|"
    r"unregister_netdevice: waiting|Objects remaining in|list_(add|del) corr|"
    r"NETDEV WATCHDOG|workqueue lockup|ODEBUG|unbalanced|"
    r"invoked oom-killer|Out of memory: Killed process|Call Trace:")
# The kernel's report, trace included, where a test lets allocations fail.
STARVED = re.compile(r"(vmalloc error|page allocation failure)"
                     r"(?:[^\n]*\n){1,12}?[^\n]*Call Trace:")
# 6.1 pins pages for good without leave to wait. If a program watches them with
# userfaultfd the call ends with EFAULT, and a kernel with DEBUG_VM prints where
# from. No driver can do otherwise there, and it is no fault.
NO_WAIT = re.compile(r"FAULT_FLAG_ALLOW_RETRY missing \w+\n(?:[^\n]*\n){1,40}?"
                     r"[^\n]*\bpin_user_pages_fast\+0x")
# A warning, from the line that names the function to the last.
WARNING = re.compile(r"[^\n]*WARNING: (?P<where>[^\n]*)\n.*?"
                     r"---\[ end trace \w+ \]---", re.DOTALL)


class Failed(AssertionError):
    """A test's verdict: an event that should have happened did not."""


class NodeDied(Failed):
    """The node went away (panic, or QEMU ended) under a command."""

    def __init__(self, node: "Node", what: str) -> None:
        super().__init__(f"{what}\n{node.last_words()}")
        self.node = node


class Result:
    """How a command ended."""

    def __init__(self, command: str, code: int, out: str) -> None:
        self.command = command
        self.code = code
        self.out = out

    def __str__(self) -> str:
        return self.out.strip()


class Proc:
    """A command that runs on a node."""

    def __init__(self, node: "Node", ident: int, command: str) -> None:
        self.node = node
        self.command = command
        self._id = ident
        self._out = bytearray()
        self._code: int | None = None
        self._dead = False
        self._changed = node._changed

    @property
    def out(self) -> str:
        """Its output so far, stdout and stderr together."""
        with self._changed:
            return self._out.decode(errors="replace")

    @property
    def code(self) -> int | None:
        """Its exit code, or None while it runs."""
        return self._code

    def wait(self, timeout: float = 60, check: bool = True) -> Result:
        """Its end within the time; else it is killed and the test fails."""
        if not self._until(lambda: self._code is not None, timeout):
            self._fail_late(timeout)
        result = Result(self.command, self._code, self.out)
        if check and result.code:
            raise Failed(f"{self.node}: exit {result.code}: {self.command}\n"
                         f"{_tail(result.out)}")
        return result

    def expect(self, pattern: str, timeout: float = 60) -> re.Match:
        """Wait until its output matches a regular expression."""
        found = None

        def seen() -> bool:
            nonlocal found
            found = re.search(pattern, self.out, re.MULTILINE)
            return found is not None or self._code is not None

        self._until(seen, timeout)
        if not found:
            raise Failed(f"{self.node}: no '{pattern}' from: {self.command}\n"
                         f"{_tail(self.out)}")
        return found

    def more(self, seen: int) -> bool:
        """Wait for output behind so many characters; False when it has ended."""
        self._until(lambda: self._code is not None or len(self.out) > seen,
                    None)
        return self._code is None

    def kill(self, signum: int = signal.SIGKILL) -> None:
        """Signal it and all that it started."""
        self.node._send(f"kill {self._id} {int(signum)}\n".encode())

    def _until(self, condition, timeout: float | None) -> bool:
        limit = timeout and timeout * self.node.kernel.slow
        with self._changed:
            done = self._changed.wait_for(
                lambda: condition() or self._dead, limit)
        if self._dead and not condition():
            raise NodeDied(self.node,
                           f"{self.node} died during: {self.command}")
        return done

    def _fail_late(self, timeout: float) -> None:
        self.kill()
        raise Failed(f"{self.node}: still running after {timeout:g} s: "
                     f"{self.command}\n{_tail(self.out)}")


class Node:
    """A virtual machine with eth0, rxe0 and an agent; see README.md."""

    def __init__(self, number: int, kernel: Kernel, initrd: Path,
                 logs: Path, switch, total: int,
                 virtual_time: bool = False,
                 shares: tuple[Path, ...] = ()) -> None:
        self.number = number
        self.kernel = kernel
        self.ip = f"10.0.0.{number}"
        self.ip6 = f"fd00::{number}"
        self.console = logs / f"node{number}.console"
        self.transcript = logs / f"node{number}.transcript"
        self.machine: qemu.Machine | None = None
        self._initrd = initrd
        self._switch = switch
        self._virtual_time = virtual_time
        self._shares = shares
        self.total = total      # nodes that there are when it boots
        self._procs: dict[int, Proc] = {}
        self._next = 0
        self._changed = threading.Condition(threading.RLock())
        self._ready = False
        self._gone = True
        self._scanned = 0
        self._complained: list[str] = []    # in consoles of earlier boots
        self.boots = 0
        self.served: list[str] = []     # tests since it was booted
        self.objects: dict[str, Path] = {}  # modules, where the host has them
        self.killed = False     # by a test, on purpose
        self.tainted = False    # not fit for another test
        self.starved = False    # a test lets allocations fail, on purpose
        self.parameters = ""    # of the kernel, beside those of the rig
        self.memory = 0         # MiB at least, beside the kernel's own figure

    def __str__(self) -> str:
        return f"node{self.number}"

    # ------------------------------------------------------------ commands

    def start(self, command: str) -> Proc:
        """Start a shell command (bash) and come back at once."""
        with self._changed:
            self._next += 1
            proc = Proc(self, self._next, command)
            self._procs[self._next] = proc
            self._log(f"\n[{self._next}] $ {command}\n")
            if self._gone:
                proc._dead = True
                return proc
        text = command.encode()
        self._send(b"run %d %d\n" % (proc._id, len(text)) + text)
        return proc

    def run(self, command: str, timeout: float = 60,
            check: bool = True) -> Result:
        """Run a shell command to its end; a failure fails the test."""
        return self.start(command).wait(timeout, check)

    def wait_for(self, command: str, timeout: float = 30) -> None:
        """Wait until a command succeeds."""
        loop = f"until {{ {command}; }} > /dev/null 2>&1; do sleep 0.1; done"
        proc = self.start(loop)
        try:
            proc.wait(timeout)
        except NodeDied:
            raise
        except Failed as error:
            state = self.run(command, check=False)
            raise Failed(f"{self}: not within {timeout:g} s: {command}\n"
                         f"{_tail(state.out)}") from error

    def read(self, path: str) -> str:
        """A file of the node."""
        return self.run(f"cat {shlex.quote(path)}").out

    def write(self, path: str, text: str) -> None:
        self.run(f"printf %s {shlex.quote(text)} > {shlex.quote(path)}")

    def hw_counters(self) -> dict[str, int]:
        """The RDMA device's counters: they prove which packets used the wire."""
        out = self.run(f"cd {DEVICE_COUNTERS} && grep -H . *").out
        return {name: int(value) for name, value in
                (line.split(":") for line in out.split())}

    def at_hand(self) -> int:
        """KiB of free pages that the processors keep for themselves: up to some
        MiB, which the kernel's figures for free memory leave out.
        """
        lines = self.run("grep count: /proc/zoneinfo").out.splitlines()
        return sum(int(line.split()[1]) for line in lines) * PAGE_KIB

    def modules(self) -> set[str]:
        """The names of loaded modules."""
        return {line.split()[0] for line in
                self.read("/proc/modules").splitlines()}

    # -------------------------------------------------------------- faults

    def kill(self) -> None:
        """The node vanishes, as by a power cut."""
        self.killed = True
        self._switch.cut(self.number)
        self._stop()

    def reboot(self) -> None:
        """Kill it and boot it anew (no modules of ours are loaded then)."""
        self.kill()
        self.boot()
        self.wait_booted()

    def pause(self) -> None:
        """Stop its clock and processors; frames to it are lost."""
        self.machine.qmp("stop")

    def resume(self) -> None:
        self.machine.qmp("cont")

    def link(self, up: bool) -> None:
        """Plug the cable in or out: the node notices."""
        self.machine.qmp("set_link", name="net0", up=up)

    def cut(self) -> None:
        """Lose all frames from and to it: nobody notices."""
        self._switch.cut(self.number)

    def join(self) -> None:
        """End cut()."""
        self._switch.join(self.number)

    def deaf(self, on: bool = True) -> None:
        """Lose what connection managers send to it, over IPv4; no data."""
        self._switch.deaf(self.number, on)

    def loss(self, percent: float) -> None:
        """Lose this share of the frames sent to it."""
        self._switch.loss(self.number, percent)

    def heal(self) -> None:
        """Undo every fault above, and end what still runs."""
        self.resume()
        self.link(True)
        self.join()
        self.deaf(False)
        self.loss(0)
        with self._changed:
            running = list(self._procs.values())
        for proc in running:
            proc.kill()
        for proc in running:
            proc.wait(timeout=10, check=False)
        # programs that need not start save a slow kernel a second each
        self.run("printf 'qdisc del dev eth0 %s\\n' root ingress | "
                 "tc -force -batch - > /dev/null 2>&1; "
                 "(( $(< /sys/class/net/eth0/flags) & 1 )) || "
                 "ip link set eth0 up; "
                 "[ -d /sys/class/infiniband/rxe0 ] || "
                 "rdma link add rxe0 type rxe netdev eth0 && "
                 # they go with the last address
                 f"{{ neighbours {self.number} {self.total} || :; }}")

    # ------------------------------------------------------------ life

    def boot(self) -> None:
        """Start the machine; wait_booted() when its network is needed."""
        self.killed = self.tainted = False
        self.boots += 1
        self.served = []
        self._put_console_away()
        self._switch.drain(self.number)
        self._switch.join(self.number)
        self._ready, self._gone = False, False
        kernel = dataclasses.replace(
            self.kernel, memory=max(self.kernel.memory, self.memory))
        self.machine = qemu.Machine(kernel, self._initrd, self.console,
                                    f"NODE={self.number} NODES={self.total} "
                                    f"{self.parameters}",
                                    self._switch.port(self.number),
                                    virtual_time=self._virtual_time,
                                    shares=self._shares)
        threading.Thread(target=self._listen, args=(self.machine,),
                         daemon=True).start()

    def wait_booted(self) -> None:
        """An emulated machine may lose the interrupt of a timer, and then its kernel
        stands still. Where that is so before any program runs it is not our fault,
        and the node is booted once more.
        """
        self._wait_ready()
        if not self._ready and not self._began():
            note(f"{self} stood still before init, and is booted again:\n"
                 f"{self.last_words()}")
            self.kill()
            self.console.write_bytes(b"")
            self._scanned = 0
            self.boot()
            self._wait_ready()
        if not self._ready:
            raise RigError(f"{self} did not boot\n{self.last_words()}")

    def _wait_ready(self) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._ready or self._gone,
                                   BOOT_SECONDS * self.kernel.slow *
                                   (PATIENCE if self._virtual_time else 1))

    def _began(self) -> bool:
        """Whether its first program, vm/init, has said so."""
        return BEGINS in self.console.read_bytes()

    def alive(self) -> bool:
        return not self._gone

    def shutdown(self) -> None:
        self._stop()

    def _stop(self) -> None:
        if self.machine:
            self.machine.close()
        with self._changed:
            self._changed.wait_for(lambda: self._gone, timeout=5)

    # ------------------------------------------------------------- console

    def complaints(self) -> list[str]:
        """Lines since the last call in which the kernel complains."""
        found = self._complained + self._scan()
        self._complained = []
        return found

    def _put_console_away(self) -> None:
        """The next boot begins with an empty console; this one is judged."""
        self._complained += self._scan()
        if self.console.exists():
            with open(self.console.with_suffix(".console.old"), "ab") as old:
                old.write(self.console.read_bytes())
        self.console.write_bytes(b"")
        self._scanned = 0

    def _scan(self) -> list[str]:
        data = self.console.read_bytes() if self.console.exists() else b""
        fresh, self._scanned = data[self._scanned:], len(data)
        # the lines of a console end with a carriage return, too
        text = fresh.decode(errors="replace").replace("\r", "")
        text = NO_WAIT.sub(lambda found: found[0].replace("Call Trace:", "", 1),
                           text)
        if self.starved:
            text = STARVED.sub(r"\1", text)
        if self.kernel.faults:
            text = WARNING.sub(self._without_fault, text)
        return [line.strip() for line in text.splitlines()
                if BAD.search(line)]

    def _without_fault(self, warning: re.Match) -> str:
        """A warning, or nothing if it is a known fault of the kernel's."""
        name = re.search(rf"\b({'|'.join(self.kernel.faults)})\+0x",
                         warning["where"])
        if not name:
            return warning[0]
        note(f"{self}: a known fault of this kernel: {name[1]}() warns")
        return ""

    def last_words(self, count: int = 20) -> str:
        """The kernel's first complaint in its console log, or just the end."""
        if not self.console.exists():
            return ""
        lines = self.console.read_text(errors="replace").splitlines()
        for number, line in enumerate(lines):
            if BAD.search(line):
                return oops.report(lines, number, self.objects)
        return "\n".join(lines[-count:])

    # ------------------------------------------------------------- channel

    def _send(self, data: bytes) -> None:
        try:
            self.machine.agent.sendall(data)
        except OSError:
            pass            # it died: the listener says so to those who wait

    def _listen(self, machine: qemu.Machine) -> None:
        try:
            with machine.agent.makefile("rb") as channel:
                while line := channel.readline():
                    self._take(line.split(), channel)
        except (OSError, ValueError):
            pass
        with self._changed:
            if machine is self.machine:
                self._gone = True
                for proc in self._procs.values():
                    proc._dead = proc._code is None
                self._procs.clear()
                self._changed.notify_all()

    def _take(self, words: list[bytes], channel) -> None:
        kind = words[0]
        data = channel.read(int(words[2])) if kind == b"out" else b""
        with self._changed:
            if kind == b"hello":
                self._ready = True
            elif kind == b"out":
                self._procs[int(words[1])]._out += data
                self._log(data.decode(errors="replace"))
            elif kind == b"exit":
                proc = self._procs.pop(int(words[1]))
                proc._code = int(words[2])
                self._log(f"[{proc._id}] exit {proc._code}\n")
            self._changed.notify_all()

    def _log(self, text: str) -> None:
        with open(self.transcript, "a", encoding="utf-8") as handle:
            handle.write(text)


def _tail(text: str, count: int = 15) -> str:
    return "\n".join(text.rstrip().splitlines()[-count:])


def stopwatch():
    """A function that tells the seconds since now."""
    begin = time.monotonic()
    return lambda: time.monotonic() - begin
