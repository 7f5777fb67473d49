# SPDX-License-Identifier: GPL-2.0-only
"""How long each test took when it ran last; the cache has it, for all trees."""

import contextlib
import fcntl
import json
import os
from collections.abc import Iterator
from pathlib import Path

from .host import CACHE

TIMES = CACHE / "times.json"


@contextlib.contextmanager
def _locked() -> Iterator[None]:
    """No other run reads or writes the times meanwhile."""
    TIMES.parent.mkdir(parents=True, exist_ok=True)
    with open(TIMES.with_suffix(".lock"), "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def known() -> dict[str, float]:
    """Seconds of each test, by the title that it has in a report."""
    try:
        return json.loads(TIMES.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}


def remember(took: dict[str, float]) -> None:
    """Seconds of tests that have just run."""
    with _locked():
        both = known() | {name: round(s, 1) for name, s in took.items()}
        fresh = Path(f"{TIMES}.{os.getpid()}")
        fresh.write_text(json.dumps(both, indent=0, sort_keys=True),
                         encoding="utf-8")
        os.replace(fresh, TIMES)
