# SPDX-License-Identifier: GPL-2.0-only
"""make shell: nodes with our modules, and a prompt.

"2 dmesg" runs on node 2, "dmesg" on the node of the prompt, "all dmesg" on each
node; "2" alone moves the prompt there. Output is shown as it comes. Ctrl-C ends
the command and not the nodes. A command with " &" at its end goes on in the
background: "jobs" lists these, "kill N" ends one. Ctrl-D ends it all.
"""

import contextlib
import signal
import sys
import threading
from collections.abc import Callable

from .host import note
from .node import Node, Proc
from .rig import Rig

HELP = ("COMMAND on this node, \"2 COMMAND\" or \"all COMMAND\" elsewhere, \"2\" to "
        "move there; & jobs \"kill N\"; Ctrl-C ends a command, Ctrl-D all nodes")


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
        with _interrupt(lambda: [j.proc.kill(signal.SIGINT) for j in started]):
            for job in started:
                job.wait()
        for job in started:
            if job.proc.code:
                print(f"[{job.proc.node}: exit {job.proc.code}]")

    def _list(self) -> None:
        for number, job in self._jobs.items():
            state = "runs" if job.running() else f"exit {job.proc.code}"
            print(f"[{number}] {job.proc.node}: {state}: {job.proc.command}")

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


def run(rig: Rig, modules: str) -> None:
    """Load the modules on all nodes and take commands until the end."""
    for node in rig.nodes:
        node.run(f"modprobe -a {modules}")
    signal.signal(signal.SIGINT, signal.default_int_handler)
    Shell(rig).run()
