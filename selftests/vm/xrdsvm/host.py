# SPDX-License-Identifier: GPL-2.0-only
"""The rig and its host: paths, programs, processes that die with the rig."""

import atexit
import ctypes
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

VM = Path(__file__).resolve().parent.parent
TOP = VM.parent.parent
BUILD = TOP / "build"
CACHE = Path(os.environ.get("XRDS_CACHE") or Path.home() / ".cache" / "xrds")

PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None)
_children: list[subprocess.Popen] = []


class RigError(Exception):
    """The rig itself failed: no verdict about XRDS is possible."""


def note(text: str) -> None:
    """A progress line for the human, in TAP's comment form."""
    print(f"# {text}", flush=True)


def call(*args, cwd=None, timeout=600, env=None) -> str:
    """Run a host program to its end; its output, or RigError."""
    words = [str(a) for a in args]
    try:
        done = subprocess.run(words, cwd=cwd, timeout=timeout, env=env,
                              stdin=subprocess.DEVNULL, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise RigError(f"{' '.join(words)}: {error}") from error
    if done.returncode:
        tail = "\n".join(done.stdout.splitlines()[-20:])
        raise RigError(f"{' '.join(words)}: exit {done.returncode}\n{tail}")
    return done.stdout


def _die_with_parent() -> None:
    os.setpgid(0, 0)
    _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def spawn(args, **kwargs) -> subprocess.Popen:
    """Start a process that cannot outlive the rig, even if the rig is killed.

    Only the main thread may call this: the kernel sends the death signal when
    the thread ends that started the process.
    """
    child = subprocess.Popen([str(a) for a in args],
                             preexec_fn=_die_with_parent, **kwargs)
    _children.append(child)
    return child


def reap(child: subprocess.Popen) -> None:
    """End a process of spawn() for good, and all that it started."""
    if child.poll() is None:
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()
    if child in _children:
        _children.remove(child)


def _reap_all() -> None:
    for child in list(_children):
        reap(child)


def _interrupted(signum, _frame) -> None:
    sys.exit(128 + signum)


def setup() -> None:
    """Arrange that no way out leaves a process behind."""
    atexit.register(_reap_all)
    for signum in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(signum, _interrupted)


def _clean_environment() -> dict[str, str]:
    """The environment without the variables of a make above us."""
    return {k: v for k, v in os.environ.items()
            if k not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL", "MAKEOVERRIDES")}


def make(*args, timeout=1800) -> str:
    """Call make; its output, or RigError."""
    return call("make", f"-j{os.cpu_count()}", *args, timeout=timeout,
                env=_clean_environment())


def try_make(*args, timeout=1800) -> tuple[str, int]:
    """Call make; all of its output, and its exit status."""
    try:
        done = subprocess.run(
            ["make", *map(str, args)], timeout=timeout, text=True, check=False,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, env=_clean_environment())
    except subprocess.TimeoutExpired:
        return f"not finished after {timeout} s", 124
    return done.stdout, done.returncode


def find_program(name: str) -> Path:
    """Where a program of the host is, sbin included."""
    path = shutil.which(name, path=os.environ["PATH"] + ":/usr/sbin:/sbin")
    if not path:
        raise RigError(f"{name} is not installed")
    return Path(path)
