# SPDX-License-Identifier: Apache-2.0
"""Integer helpers used by every level."""

LAYER = "leaf"


def cdiv(a: int, b: int) -> int:
    """Ceiling of a / b for a >= 0, b > 0."""
    return -(-a // b)


def up(a: int, q: int) -> int:
    """Smallest multiple of q that is at least a."""
    return cdiv(a, q) * q
