# SPDX-License-Identifier: Apache-2.0
"""One self-contained page about a compiled call: pictures of grids, memory and units, tables of costs."""

from __future__ import annotations

from pathlib import Path

import jinja2

from ktpu.explain import COST_HEADERS, Explanation, cost_rows, notes, sections, span
from ktpu.explain_pictures import grids, legend, memory_maps, timeline

TEMPLATES = Path(__file__).parent / "templates"
_DRAWN = ("L5 call", "Memory", "Cost", "Notes", "Counters")
"""Sections the page shows as pictures or tables of its own."""


def page(e: Explanation) -> str:
    """The page as HTML; it loads nothing and runs no script."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found = sections(e)
    by_title = {s.title: s for s in found}
    return environment.get_template("explain.html.j2").render(
        e=e,
        summary=by_title["L5 call"].lines,
        cycles=span(e.cost.low, e.cost.high),
        grids=grids(e),
        maps=memory_maps(e),
        timeline=timeline(e),
        legend=legend(e),
        cost_headers=COST_HEADERS,
        cost_rows=cost_rows(e.cost),
        buffers=by_title["Memory"].tables[0],
        notes=notes(e),
        counters=by_title["Counters"].tables[0],
        details=[s for s in found if s.title not in _DRAWN],
    )
