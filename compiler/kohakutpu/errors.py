# SPDX-License-Identifier: Apache-2.0
"""Errors of the compiler; every message names the object, the value, the limit and the fix."""

LAYER = "leaf"


class CompileError(ValueError):
    """A program that cannot be compiled as written."""


class CoverageError(CompileError):
    """A schedule that does not compute every result exactly once (docs/spec/compiler.md 5.2)."""


class HazardError(CompileError):
    """An instruction order that would overwrite operands still in use (docs/spec/compiler.md 9.1)."""


class EncodeError(CompileError):
    """A value that its instruction field cannot hold."""


class TraceError(CompileError):
    """A kernel that cannot be traced as written; the message says what to write instead."""


class CannotFuse(CompileError):  # noqa: N818  the name docs/spec/compiler.md uses
    """An epilogue that cannot run on the tile where it arrives (docs/spec/compiler.md 12.7).

    Args:
        message: for the author, with both ways out.
        reason: the condition alone.
    """

    def __init__(self, message: str, reason: str = "") -> None:
        super().__init__(message)
        self.reason = reason or message
