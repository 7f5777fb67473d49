# SPDX-License-Identifier: GPL-2.0-only
"""gdb on a node: symbols of the kernel that runs there.

Functions of the kernel come from the node's kallsyms, as a file of symbols
without code. Our modules are the objects that were built, with lines and types,
at the places where the node has loaded them.
"""

import re
import struct
from pathlib import Path

from .node import Node

KINDS = "tTwWdDbBrR"
SECTIONS = re.compile(r"\.(text|data|bss|rodata|noinstr\.text)(\.[\w.]+)?$")
MODULE_SECTIONS = "cd /sys/module/{}/sections && grep -H . .[!.]*"
KALLSYMS = f"grep -v '\\[' /proc/kallsyms | grep ' [{KINDS}] '"

# ELF: sizes of a header, a section header and a symbol
EHDR, SHDR, SYM = 64, 64, 24
SHT_SYMTAB, SHT_STRTAB, SHT_NOBITS = 2, 3, 8
SHF_ALLOC_EXEC = 0x2 | 0x4
GLOBAL_FUNC, GLOBAL_OBJECT = 0x12, 0x11
SECTION_NAMES = b"\0.kernel\0.symtab\0.strtab\0.shstrtab\0"


def prepare(node: Node, where: Path) -> Path:
    """Write what gdb reads at its start; it finds the node at a socket."""
    base = where / f"{node}"
    stub, symbols = Path(f"{base}.gdb"), Path(f"{base}.symbols")
    if not stub.exists():
        found = parse_kallsyms(node.run(KALLSYMS, timeout=120).out)
        symbols.write_bytes(elf(found))
        node.machine.qmp("human-monitor-command", **{
            "command-line": f"gdbserver unix:{stub},server=on,wait=off"})
    lines = [f"file {symbols}"]
    loaded = node.modules()
    for name, path in node.objects.items():
        if name in loaded:
            places = node.run(MODULE_SECTIONS.format(name)).out
            lines.append(add_module(path, places))
    lines += ["set confirm off", f"target remote {stub}"]
    script = Path(f"{base}.gdbinit")
    script.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return script


def add_module(path: Path, places: str) -> str:
    """gdb's command for a module, by its sections: "NAME:ADDRESS" a line."""
    found = [line.strip().split(":") for line in places.splitlines()]
    return f"add-symbol-file {path}" + "".join(
        f" -s {name} {address}" for name, address in found
        if SECTIONS.match(name))


def parse_kallsyms(text: str) -> list[tuple[int, bool, str]]:
    """Address, whether it is a function, and name of each symbol."""
    found = re.findall(rf"^([0-9a-f]+) ([{KINDS}]) (\S+)$", text, re.MULTILINE)
    return sorted((int(address, 16), kind in "tTwW", name)
                  for address, kind, name in found if int(address, 16))


def elf(symbols: list[tuple[int, bool, str]]) -> bytes:
    """A file that has these symbols, and no content at their addresses."""
    first, last = symbols[0][0], symbols[-1][0]
    names, table = bytearray(b"\0"), bytearray(SYM)
    for address, is_function, name in symbols:
        kind = GLOBAL_FUNC if is_function else GLOBAL_OBJECT
        table += struct.pack("<IBBHQQ", len(names), kind, 0, 1, address, 0)
        names += name.encode() + b"\0"
    content = bytes(table + names) + SECTION_NAMES
    at_names = EHDR + len(table)
    at_own = at_names + len(names)

    def section(name: str, kind: int, flags=0, address=0, offset=EHDR, size=0,
                link=0, info=0, entry=0) -> bytes:
        return struct.pack("<IIQQQQIIQQ",
                           SECTION_NAMES.index(f"\0{name}\0".encode()) + 1, kind,
                           flags, address, offset, size, link, info, 1, entry)

    sections = [bytes(SHDR),
                section(".kernel", SHT_NOBITS, SHF_ALLOC_EXEC, first,
                        size=last - first + 1),
                section(".symtab", SHT_SYMTAB, size=len(table), link=3, info=1,
                        entry=SYM),
                section(".strtab", SHT_STRTAB, offset=at_names, size=len(names)),
                section(".shstrtab", SHT_STRTAB, offset=at_own,
                        size=len(SECTION_NAMES))]
    header = struct.pack("<16sHHIQQQIHHHHHH", b"\x7fELF\2\1\1", 2, 62, 1, first,
                         0, EHDR + len(content), 0, EHDR, 0, 0, SHDR,
                         len(sections), len(sections) - 1)
    return header + content + b"".join(sections)
