# SPDX-License-Identifier: GPL-2.0-only
"""Work in a process of its own, whose verdicts go into this one's report.

A test is ended by a signal when its time is over, and only the main thread of a
process gets that. So tests that run beside others need another process.
"""

import ctypes
import multiprocessing
import os
import signal
import threading
import traceback
from collections.abc import Callable

from .host import PR_SET_PDEATHSIG
from .tap import Point, Report


class _Relay(Report):
    """What it is told, it tells the report of the process that started it."""

    def __init__(self, pipe) -> None:
        super().__init__()
        self._pipe = pipe

    def add(self, name: str, point: Point, seconds: float | None = None) -> None:
        self._pipe.send(("add", name, point, seconds))

    def ran(self, title: str, seconds: float) -> None:
        super().ran(title, seconds)
        self._pipe.send(("ran", title, seconds))

    def hold(self, name: str, steps: int, most: int, title: str) -> None:
        self._pipe.send(("hold", name, steps, most, title))

    def off(self, usec: int, where: str, title: str) -> None:
        self._pipe.send(("off", usec, where, title))


class Beside:
    """A process that works and reports, until wait() returns or the context
    ends. Start it before threads and nodes: it is forked.
    """

    def __init__(self, work: Callable[[Report], None], report: Report) -> None:
        self._report = report
        self._verdicts, pipe = multiprocessing.Pipe(duplex=False)
        # ended when this process ends, by atexit or by the kernel
        self._process = multiprocessing.get_context("fork").Process(
            target=self._work, args=(work, pipe, os.getpid()), daemon=True)
        self._process.start()
        pipe.close()
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    @staticmethod
    def _work(work: Callable[[Report], None], pipe, parent: int) -> None:
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() != parent:
            return
        relay = _Relay(pipe)
        try:
            work(relay)
        except Exception:       # the others' verdicts count all the same
            relay.add("beside", Point("", False, why=traceback.format_exc()))
            raise

    def _listen(self) -> None:
        try:
            while True:
                method, *arguments = self._verdicts.recv()
                getattr(self._report, method)(*arguments)
        except EOFError:
            pass

    def wait(self) -> None:
        """Until the work is done and all it reported has been taken."""
        if self._process:
            self._listener.join()
            self._process.join()
            code, self._process = self._process.exitcode, None
            if code:
                self._report.add("beside", Point("", False, why=f"exit {code}"))

    def __enter__(self) -> "Beside":
        return self

    def __exit__(self, kind, _error, _trace) -> None:
        if kind is None or issubclass(kind, Exception):
            self.wait()
