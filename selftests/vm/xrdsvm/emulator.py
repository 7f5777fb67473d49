# SPDX-License-Identifier: GPL-2.0-only
"""The QEMU that emulates nodes with more than one processor.

Before 8.1 a processor may go on with a translation of code that another one has
just written over. Linux writes over its own code at boot, with each module and
with each static key, and nodes died of that: "Oops: int3". Debian 12 has 7.2,
so there the QEMU of its backports is unpacked into the cache; nothing of it is
installed on the machine. It needs the same libraries.
"""

import functools
import re
import tempfile
from pathlib import Path

from .host import CACHE, RigError, call, note
from .kernels import publish

SYSTEM = "qemu-system-x86_64"
MENDED = (8, 1)
PLACE = CACHE / "qemu"
PACKAGES = ("qemu-system-x86", "qemu-system-common", "qemu-system-data",
            "seabios")


@functools.cache
def find() -> str:
    """A QEMU without that fault; the machine's own if there is no other."""
    if _version(SYSTEM) >= MENDED:
        return SYSTEM
    program = PLACE / "usr/bin" / SYSTEM
    try:
        if not PLACE.exists():
            _fetch()
        if _version(program) >= MENDED:
            return str(program)
    except (RigError, OSError) as error:
        note(f"no newer QEMU: {str(error).splitlines()[-1]}")
    note("this QEMU breaks a node now and then that patches its own code")
    return SYSTEM


def _version(program) -> tuple[int, int]:
    text = call(program, "--version")
    found = re.search(r"version (\d+)\.(\d+)", text)
    if not found:
        raise RigError(f"{program} has no version: {text}")
    return int(found[1]), int(found[2])


def _mirror(codename: str) -> str | None:
    """The archives of the machine's own lists of packages; none without lists."""
    targets = call("apt-get", "indextargets", "--format",
                   "$(CODENAME) $(COMPONENT) $(REPO_URI)",
                   "Created-By: Packages")
    for line in targets.splitlines():
        name, component, mirror = line.split(maxsplit=2)
        if (name, component) == (codename, "main"):
            return mirror
    return None


def _backports() -> str:
    """The line for apt."""
    found = re.search(r"^VERSION_CODENAME=(\w+)$",
                      Path("/etc/os-release").read_text(), re.MULTILINE)
    if not found:
        raise RigError("the system's release has no name")
    codename = found[1]
    mirror = _mirror(codename)
    if not mirror:
        call("apt-get", "update", "-q")
        mirror = _mirror(codename)
    if not mirror:
        raise RigError(f"apt knows no mirror of {codename}")
    return f"deb {mirror} {codename}-backports main\n"


def _fetch() -> None:
    """Unpack the packages, with lists of apt that are ours alone."""
    note("fetching a newer QEMU")
    CACHE.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=CACHE) as name:
        tmp = Path(name)
        for needed in ("lists/partial", "cache/archives/partial"):
            (tmp / needed).mkdir(parents=True)
        sources = tmp / "sources.list"
        sources.write_text(_backports())
        apt = ["apt-get", "-q", "-o", "APT::Sandbox::User=root",
               "-o", f"Dir::Etc::sourcelist={sources}",
               "-o", "Dir::Etc::sourceparts=/dev/null",
               "-o", f"Dir::State::lists={tmp}/lists",
               "-o", f"Dir::Cache={tmp}/cache"]
        call(*apt, "update", "-o", "APT::Update::Error-Mode=any")
        call(*apt, "download", *PACKAGES, cwd=tmp)
        for deb in tmp.glob("*.deb"):
            call("dpkg", "-x", deb, tmp / "tree")
        publish(tmp / "tree", PLACE)
