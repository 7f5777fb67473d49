#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Makes a C list of the tables in Documentation/differences.rst, "Every number".

    differences.py differences.rst > differences.h

A row becomes ROW(section, number, name, first outcome, second outcome). Names in
tables without numbers have the number 0; tables with one outcome repeat it.
"""

import re
import sys
from pathlib import Path

SECTIONS = {
    "Socket options": "OPTION",
    "Control messages": "CMSG",
    "ioctls": "IOCTL",
    "Dumps": "DUMP",
    "Sysctls": "SYSCTL",
    "Module parameters": "PARAMETER",
}


def main() -> None:
    text = Path(sys.argv[1]).read_text()
    part = re.search(r"^Every number\n=+\n(.*?)^\S[^\n]*\n=+\n\n", text,
                     re.M | re.S)
    assert part, "there is no section 'Every number'"
    pieces = re.split(r"^(\S.*)\n-+\n", part.group(1), flags=re.M)
    for title, body in zip(pieces[1::2], pieces[2::2]):
        kind = SECTIONS[title]
        table = re.search(r"^=[= ]+\n.*\n=[= ]+\n((?:.+\n)+?)=[= ]+\n", body,
                          re.M)
        assert table, f"no table in '{title}'"
        for line in table.group(1).splitlines():
            cells = re.split(r"  +", line)
            if kind in ("SYSCTL", "PARAMETER"):
                cells = ["0", cells[0], cells[2]]
            number, name, first, *rest = cells
            print(f'ROW({kind}, {number}, "{name}", "{first}", '
                  f'"{rest[0] if rest else first}")')


main()
