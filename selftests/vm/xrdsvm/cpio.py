# SPDX-License-Identifier: GPL-2.0-only
"""Writes initramfs archives (cpio newc), programs with their libraries."""

import os
import re
import stat
from pathlib import Path

from .host import call

ALIGN = 4
PAGE = 4096


class Archive:
    """A cpio archive in the making; later entries replace earlier ones."""

    def __init__(self) -> None:
        self._entries: dict[str, tuple[int, bytes, tuple[int, int]]] = {}

    def _put(self, path: str, mode: int, data=b"", device=(0, 0)) -> None:
        path = path.strip("/")
        parent = os.path.dirname(path)
        if parent and parent not in self._entries:
            self._put(parent, stat.S_IFDIR | 0o755)
        self._entries[path] = (mode, data, device)

    def directory(self, path: str) -> None:
        self._put(path, stat.S_IFDIR | 0o755)

    def device(self, path: str, major: int, minor: int) -> None:
        self._put(path, stat.S_IFCHR | 0o600, device=(major, minor))

    def link(self, path: str, target: str) -> None:
        self._put(path, stat.S_IFLNK | 0o777, target.encode())

    def text(self, path: str, text: str, mode=0o644) -> None:
        self._put(path, stat.S_IFREG | mode, text.encode())

    def file(self, path: str, source: Path) -> None:
        mode = 0o755 if os.access(source, os.X_OK) else 0o644
        self._put(path, stat.S_IFREG | mode, source.read_bytes())

    def program(self, path: str, source: Path) -> None:
        """A program with the libraries it is linked to."""
        self.file(path, source)
        for library in libraries(source):
            self.file(str(library), library)

    def tree(self, path: str, source: Path) -> None:
        for item in sorted(source.rglob("*")):
            if item.is_file() and "__pycache__" not in item.parts:
                self.file(f"{path}/{item.relative_to(source)}", item)

    def __bytes__(self) -> bytes:
        parts: list[bytes] = []
        for inode, (path, entry) in enumerate(self._entries.items(), 1):
            parts += _record(inode, path, *entry)
        parts += _record(0, "TRAILER!!!", 0, b"", (0, 0))
        blob = b"".join(parts)
        return blob + b"\0" * (-len(blob) % PAGE)


def _record(inode, path, mode, data, device) -> list[bytes]:
    name = path.encode() + b"\0"
    fields = (inode, mode, 0, 0, 1, 0, len(data), 0, 0, *device, len(name), 0)
    head = b"070701" + b"".join(b"%08X" % f for f in fields) + name
    return [head, b"\0" * (-len(head) % ALIGN),
            data, b"\0" * (-len(data) % ALIGN)]


def libraries(program: Path) -> list[Path]:
    """The shared libraries of a program, loader included; none if static."""
    with open(program, "rb") as handle:
        if handle.read(4) != b"\x7fELF":
            return []
    listing = call("sh", "-c", 'ldd "$0" 2>&1 || :', program)
    return [Path(p) for p in re.findall(r"(/\S+\.so\S*)", listing)]
