# SPDX-License-Identifier: GPL-2.0-only
"""The test rig: kernels, images, nodes and the runner. See ../README.md."""
