# SPDX-License-Identifier: GPL-2.0-only
"""make shell: nodes with our modules, and a prompt; make run: one program.

"2 dmesg" runs on node 2, "dmesg" on the node of the prompt, "all dmesg" on each
node; "2" alone moves the prompt there. Output is shown as it comes. Ctrl-C ends
the command and not the nodes. A command with " &" at its end goes on in the
background: "jobs" lists these, "kill N" ends one. "gdb" debugs the kernel of the
prompt's node; with arguments, gdb has these. Ctrl-D ends it all.
"""

import contextlib
import shlex
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

from . import gdb
from .host import BUILD, TOP, VM, RigError, call, note
from .node import Failed, Node, Proc
from .rig import Rig

HELP = ("COMMAND on this node, \"2 COMMAND\" or \"all COMMAND\" elsewhere, \"2\" to "
        "move there; & jobs \"kill N\"; gdb; Ctrl-C ends a command, Ctrl-D all nodes")
SHARE = "/mnt"          # where nodes see a folder of the host


class _Job:
    """A command whose output is shown while it runs."""

    def __init__(self, node: Node, command: str, prefix: str) -> None:
        self.proc: Proc = node.start(command)
        self._prefix = prefix
        self._shown = 0
        self._thread = threading.Thread(target=self._show, daemon=True)
        self._thread.start()

    def _show(self) -> None:
        while self.proc.more(self._shown):
            self._print()
        self._print(last=True)

    def _print(self, last: bool = False) -> None:
        text = self.proc.out[self._shown:]
        if self._prefix and not last:       # whole lines, as others write too
            text = text[:text.rfind("\n") + 1]
        self._shown += len(text)
        for line in text.splitlines(keepends=True):
            sys.stdout.write(self._prefix + line)
        sys.stdout.flush()

    def wait(self) -> None:
        self._thread.join()

    def running(self) -> bool:
        return self._thread.is_alive()


class Shell:
    """The prompt."""

    def __init__(self, rig: Rig) -> None:
        self._rig = rig
        self._node = rig.a
        self._jobs: dict[int, _Job] = {}

    def run(self) -> None:
        note(HELP)
        with contextlib.suppress(ImportError):
            import readline     # noqa: F401  editing of lines, a history
        while True:
            try:
                line = input(f"{self._node}# " if sys.stdin.isatty() else "")
            except EOFError:
                return
            except KeyboardInterrupt:
                print()
                continue
            self._do(line.strip())

    def _do(self, line: str) -> None:
        first, _, rest = line.partition(" ")
        nodes = [self._node]
        if first == "all":
            nodes, line = list(self._rig.nodes), rest
        elif first.isdigit() and 1 <= int(first) <= len(self._rig.nodes):
            nodes, line = [self._rig.nodes[int(first) - 1]], rest
            if not rest:
                self._node = nodes[0]
        if line in ("jobs", "help"):
            self._list() if line == "jobs" else note(HELP)
        elif line.split()[:1] == ["gdb"]:
            self._debug(nodes[0], shlex.split(line)[1:])
        elif line.startswith("kill ") and self._kill(line[5:].strip()):
            pass
        elif line:
            self._start(nodes, line)

    def _start(self, nodes: list[Node], line: str) -> None:
        behind = line.endswith("&")
        line = line.removesuffix("&").strip()
        started = [_Job(n, line, f"{n}: " if behind or len(nodes) > 1 else "")
                   for n in nodes]
        if behind:
            for job in started:
                number = max(self._jobs, default=0) + 1
                self._jobs[number] = job
                print(f"[{number}] {job.proc.node}: {line}")
            return
        _finish(started)

    def _list(self) -> None:
        for number, job in self._jobs.items():
            state = "runs" if job.running() else f"exit {job.proc.code}"
            print(f"[{number}] {job.proc.node}: {state}: {job.proc.command}")

    def _debug(self, node: Node, arguments: list[str]) -> None:
        """gdb has the terminal, and stops the node, until it ends."""
        try:
            call(VM / "deps.sh", "gdb", timeout=900)
            script = gdb.prepare(node, self._rig.directory)
            with _interrupt(lambda: None):
                subprocess.run(["gdb", "-q", "-x", script, *arguments],
                               cwd=TOP, check=False)
            node.resume()
        except (RigError, Failed) as error:
            print(error)

    def _kill(self, number: str) -> bool:
        """Of a job; any other number is one of the node's processes."""
        job = self._jobs.get(int(number)) if number.isdigit() else None
        if job:
            job.proc.kill(signal.SIGTERM)
        return job is not None


@contextlib.contextmanager
def _interrupt(action: Callable[[], object]):
    """Ctrl-C does this meanwhile."""
    before = signal.signal(signal.SIGINT, lambda *_: action())
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _finish(jobs: list[_Job]) -> int:
    """Their end; how many have failed."""
    with _interrupt(lambda: [j.proc.kill(signal.SIGINT) for j in jobs]):
        for job in jobs:
            job.wait()
    failed = [job for job in jobs if job.proc.code]
    for job in failed:
        print(f"[{job.proc.node}: exit {job.proc.code}]")
    return len(failed)


def run(rig: Rig, modules: str, share: bool = False) -> None:
    """Load the modules on all nodes and take commands until the end."""
    for node in rig.nodes:
        node.run(f"modprobe -a {modules}")
        if share:
            node.run("modprobe -a 9p 9pnet_virtio && mount -t 9p -o "
                     f"trans=virtio,version=9p2000.L,ro share0 {SHARE}")
    signal.signal(signal.SIGINT, signal.default_int_handler)
    Shell(rig).run()


def program(name: str) -> Path:
    """A program to be run on nodes, compiled if it is C."""
    path = Path(name).resolve()
    if not path.is_file():
        raise RigError(f"PROG={name}: no such file")
    if path.suffix != ".c":
        return path
    made = BUILD / "run" / path.stem
    made.parent.mkdir(parents=True, exist_ok=True)
    call("cc", "-O2", "-g", "-Wall", f"-I{TOP / 'include/uapi'}", "-o", made,
         path, "-lpthread")
    return made


def run_program(rig: Rig, path: Path, arguments: str, modules: str) -> int:
    """It runs on all nodes at once; the exit status is 1 if one has failed."""
    for node in rig.nodes:
        node.run(f"modprobe -a {modules}")
    jobs = [_Job(node, f"{_environment(rig, node)} exec {path} {arguments}",
                 f"{node}: " if len(rig.nodes) > 1 else "")
            for node in rig.nodes]
    failed = _finish(jobs)
    for node in rig.nodes:
        for line in node.complaints():
            failed += 1
            print(f"{node}'s kernel log: {line}")
    return min(failed, 1)


def _environment(rig: Rig, node: Node) -> str:
    """Addresses of the node and of the others: assignments for a shell."""
    peers = " ".join(n.ip for n in rig.nodes if n is not node)
    return f"NODE={node.number} IP={node.ip} PEERS='{peers}'"
