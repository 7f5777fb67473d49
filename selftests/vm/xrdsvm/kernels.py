# SPDX-License-Identifier: GPL-2.0-only
"""The kernels that tests run on: where headers, image and modules come from.

Debian's kernels are downloaded to the cache and unpacked there, never
installed. The debug kernel is our own build (debugkernel.py), 7.2 is sid's
(sidkernel.py).
"""

import os
import re
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from . import host
from .host import CACHE, RigError, call, note

NAMES = ("6.1", "6.12", "7.2", "debug")
HEADERS = {"6.1": "linux-headers-amd64", "6.12": "linux-headers-6.12-amd64"}


@dataclass(frozen=True)
class Kernel:
    """One bootable kernel and the headers to build modules for it."""
    name: str
    release: str
    kdir: Path              # a value for KDIR=
    vmlinuz: Path
    modroot: Path           # holds lib/modules/<release>
    append: str = ""        # extra kernel command line
    memory: int = 512       # MiB a node
    slow: float = 1.0       # factor on time limits
    kmemleak: bool = False  # it can find leaks
    injects: bool = False   # it can let allocations fail
    faults: tuple[str, ...] = ()    # its own functions that are known to warn
    nic: str = ""           # more properties of the network device
    root: Path | None = None    # where headers and compiler are, by chroot

    @property
    def modules(self) -> Path:
        return (self.modroot / "lib/modules" / self.release).resolve()


def find(name: str) -> Kernel:
    """The kernel of that name, fetched if it is not in the cache."""
    if name in HEADERS:
        return _find_debian(name)
    if name == "debug":
        from . import debugkernel
        return debugkernel.find()
    if name == "7.2":
        from . import sidkernel
        return sidkernel.find(name)
    raise RigError(f"unknown kernel '{name}': one of {', '.join(NAMES)}")


def _find_debian(name: str) -> Kernel:
    package = HEADERS[name]
    call(host.VM / "deps.sh", package, timeout=900)
    release = _release_of(package)
    root = CACHE / "kernels" / release
    if not root.exists():
        release = _fetch(package, release)
        root = CACHE / "kernels" / release
    vmlinuz = next(root.glob("boot/vmlinuz-*"))
    return Kernel(name, release, Path(f"/usr/src/linux-headers-{release}"),
                  vmlinuz, root)


def _release_of(package: str) -> str:
    depends = call("dpkg-query", "-W", "-f", "${Depends}", package)
    found = re.search(r"linux-headers-(\S+)", depends)
    if not found:
        raise RigError(f"{package} depends on no headers: {depends}")
    return found.group(1)


def _fetch(package: str, release: str) -> str:
    """Unpack the image that matches the headers; its release."""
    try:
        _unpack(f"linux-image-{release}", CACHE / "kernels" / release)
        return release
    except RigError:
        note("the package lists are old: updating them and the headers")
    env = dict(os.environ, DEBIAN_FRONTEND="noninteractive")
    call("apt-get", "update", "-q", timeout=600)
    call("apt-get", "install", "-q", "-y", "--no-install-recommends", package,
         timeout=900, env=env)
    release = _release_of(package)
    _unpack(f"linux-image-{release}", CACHE / "kernels" / release)
    return release


def _unpack(package: str, root: Path) -> None:
    note(f"fetching {package}")
    root.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=root.parent) as tmp:
        download(package, Path(tmp))
        deb = next(Path(tmp).glob("*.deb"))
        tree = Path(tmp) / "tree"
        call("dpkg", "-x", deb, tree)
        for release in (tree / "lib/modules").iterdir():
            call(host.find_program("depmod"), "-b", tree, release.name)
        publish(tree, root)


def download(package: str, directory: Path) -> None:
    """Fetch a package's file into a directory, without installing it."""
    call("apt-get", "download", "-q", "-o", "APT::Sandbox::User=root",
         package, cwd=directory, timeout=900)


def publish(tree: Path, place: Path) -> None:
    """Move a finished tree into the cache; another run may have been first."""
    try:
        os.rename(tree, place)
    except OSError:
        if not place.exists():
            raise
        shutil.rmtree(tree)
