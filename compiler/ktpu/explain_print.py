# SPDX-License-Identifier: Apache-2.0
"""Printed form of an explanation."""

from __future__ import annotations

from collections.abc import Iterable
from io import StringIO

from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from ktpu.explain import Section, Table

WIDTH = 240


def show(found: Iterable[Section], console: Console) -> None:
    """Print every section under a rule with its title."""
    for section in found:
        console.rule(section.title, align="left")
        for line in section.lines:
            console.print(Text(line), soft_wrap=True)
        for table in section.tables:
            # a table wider than the screen runs over its edge instead of folding every cell
            for line in _lines(table):
                console.print(Text(line), soft_wrap=True)
        console.print()


def _lines(table: Table) -> list[str]:
    out = RichTable(box=None, pad_edge=False)
    for number, header in enumerate(table.headers):
        numeric = all(row[number][:1].isdigit() and "x" not in row[number] for row in table.rows)
        out.add_column(header, justify="right" if numeric else "left", no_wrap=True)
    for row in table.rows:
        out.add_row(*map(Text, row))
    wide = Console(width=WIDTH, file=StringIO(), color_system=None)
    with wide.capture() as captured:
        wide.print(out)
    return [line.rstrip() for line in captured.get().splitlines()]
