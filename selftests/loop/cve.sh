#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Advisories about net/rds that no other test covers, see faults.rst.
# nodes: 1
# timeout: 300
# modules: xrds

exec test_cve
