# SPDX-License-Identifier: GPL-2.0-only
"""The kernel with KASAN, lockdep and kmemleak."""

import os
import tempfile
from pathlib import Path

from .host import CACHE, RigError, call, note
from .kernels import Kernel, publish

HOME = CACHE / "debug-kernel"
MEMORY = 2048
SLOW = 4.0


def find() -> Kernel:
    """The debug kernel: built before, or from XRDS_DEBUG_KERNEL_TAR."""
    if not HOME.exists():
        tarball = os.environ.get("XRDS_DEBUG_KERNEL_TAR")
        if not tarball:
            raise RigError("no debug kernel here: make debug-kernel builds it")
        _unpack(Path(tarball))
    release = next((HOME / "modules/lib/modules").iterdir()).name
    return Kernel("debug", release, HOME / "build", HOME / "bzImage",
                  HOME / "modules", append="pci=noacpi", memory=MEMORY,
                  slow=SLOW)


def _unpack(tarball: Path) -> None:
    note(f"unpacking {tarball.name}")
    HOME.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=HOME.parent) as tmp:
        tree = Path(tmp) / "tree"
        tree.mkdir()
        call("tar", "-C", tree, "-xf", tarball.resolve())
        publish(tree, HOME)


def build() -> None:
    """Build it from Debian's kernel source."""
    raise RigError("not written yet")
