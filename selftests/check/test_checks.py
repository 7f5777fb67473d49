# SPDX-License-Identifier: GPL-2.0-only
"""Tests of the checks: "make -C selftests/unit checks" runs these.

Each plants one thing that "make style" forbids in a copy of the code, and the
check must name it.
"""

import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
CHECKS = "selftests/check"
COPIED = ("net", CHECKS, "CONTRIBUTING.md")


class Planted(unittest.TestCase):
    """A copy of the code"""

    def setUp(self):
        self.copy = Path(tempfile.mkdtemp(prefix="checks."))
        self.addCleanup(shutil.rmtree, self.copy)
        for name in COPIED:
            path = TOP / name
            (shutil.copytree if path.is_dir() else shutil.copy)(
                path, self.copy / name)
        # the checks ask git for the files
        subprocess.run(["git", "init", "-q", self.copy], check=True)

    def add(self, name: str, text: str) -> None:
        """Put text behind the last line of a file."""
        with (self.copy / name).open("a") as file:
            file.write(text)

    def found(self, check: str) -> str:
        """The output of a check, which fails if that is not empty."""
        done = subprocess.run([sys.executable, f"{CHECKS}/{check}"],
                              cwd=self.copy, text=True, capture_output=True)
        self.assertEqual(done.stderr, "")
        self.assertEqual(done.returncode, 1 if done.stdout else 0)
        return done.stdout

    def test_nothing(self):
        for check in ("layers", "english", "shape"):
            with self.subTest(check):
                self.assertEqual(self.found(check), "")


class Layers(Planted):
    """Folders that know no folder above"""

    def test_upward_header(self):
        self.add("net/xrds/conn/txq.c", '#include "sock/sock.h"\n')
        self.assertIn("conn/txq.c includes sock/sock.h", self.found("layers"))

    def test_upward_header_of_header(self):
        self.add("net/xrds/rdma/rdma.h", '#include "diag/diag.h"\n')
        self.assertIn("rdma/rdma.h includes diag/diag.h", self.found("layers"))

    def test_transports_apart(self):
        self.add("net/xrds/loop/loop.c", '#include "ib/ib.h"\n')
        self.assertIn("loop/loop.c includes ib/ib.h", self.found("layers"))

    def test_upward_call(self):
        self.add("net/xrds/conn/txq.c", "\nvoid xrds_txq_wrong(void)\n{\n"
                 "\txrds_dest_find_or_create();\n}\n")
        self.assertIn("conn/txq.c calls up to sock/dest.c", self.found("layers"))

    def test_folders_in_circle(self):
        self.add("net/xrds/wire/hdr.c", "\nvoid xrds_wire_wrong(void)\n{\n"
                 "\txrds_txq_end();\n}\n")
        self.assertIn("wire/hdr.c calls up to conn/txq.c", self.found("layers"))

    def test_files_in_circle(self):
        self.add("net/xrds/conn/flow.c", "\nvoid xrds_flow_wrong(void)\n{\n"
                 "\txrds_txq_end();\n}\n")
        self.assertIn("conn/flow.c calls conn/txq.c, which leads back",
                      self.found("layers"))

    def test_circles_through_seams(self):
        self.add("net/xrds/diag/nl_news.c", "\nvoid xrds_nl_news_wrong(void)\n"
                 "{\n\txrds_nl_dump_start_table();\n"
                 "\txrds_conn_net_reset();\n}\n")
        self.assertIn("files are in circles of calls", self.found("layers"))

    def test_pairs_through_seams(self):
        self.add("net/xrds/diag/nl_news.c", "\nvoid xrds_nl_news_wrong(void)\n"
                 "{\n\txrds_peer_get();\n}\n")
        self.assertIn("files that call each other", self.found("layers"))

    def test_rdma_types(self):
        self.add("net/xrds/conn/conn.c", "#include <rdma/ib_verbs.h>\n")
        self.assertIn("conn/conn.c: types of RDMA", self.found("layers"))


class English(Planted):
    """Clauses that name their subject"""

    SENTENCE = "It tells what was sent to whoever asks."

    def test_page(self):
        self.add("CONTRIBUTING.md", f"\n{self.SENTENCE}\n" * 3)
        found = self.found("english")
        self.assertEqual(found.count(self.SENTENCE), 3)
        self.assertIn("CONTRIBUTING: ", found)

    def test_comments(self):
        self.add("net/xrds/msg.c", f"/* {self.SENTENCE} */\n" * 40)
        self.assertIn("net/xrds: ", self.found("english"))


class Shape(Planted):
    """Sizes"""

    def test_function(self):
        self.add("net/xrds/msg.c", "\nvoid xrds_msg_long(void)\n{\n"
                 + "\tf();\n" * 130 + "}\n")
        self.assertIn("xrds_msg_long() has 132 lines", self.found("shape"))

    def test_file(self):
        self.add("net/xrds/msg.c", "/* */\n" * 800)
        self.assertIn("file is over 800 lines", self.found("shape"))

    def test_license(self):
        self.add("net/xrds/new.c", "int i;\n")
        self.assertIn("net/xrds/new.c:1: no SPDX", self.found("shape"))


class Style(unittest.TestCase):
    """make style"""

    def test_all_checks(self):
        text = (TOP / CHECKS / "style").read_text()
        for check in ("shape", "layers", "rows", "spec", "english"):
            self.assertIn(f'run python3 "$(dirname "$0")/{check}"', text)


if __name__ == "__main__":
    unittest.main()
