# SPDX-License-Identifier: Apache-2.0
"""Curves of the numerics report: the share of elements whose error exceeds a value, both axes logarithmic."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ktpu.numerics import FP64, INTERPRETER, LIMITS, MODEL, MX, RTL, Report, Row, Tensor

F64 = npt.NDArray[np.float64]

STYLES: dict[tuple[str, str], dict[str, Any]] = {
    (MX, FP64): {"color": "#9a9a9a", "linewidth": 5.0, "label": "format alone: mx against fp64"},
    (MODEL, FP64): {"color": "#0072b2", "linewidth": 3.2, "label": "model against fp64"},
    (RTL, FP64): {"color": "#000000", "linewidth": 1.2, "linestyle": (0, (1, 2.5)), "label": "RTL against fp64"},
    (MODEL, MX): {"color": "#d55e00", "linewidth": 1.4, "label": "model against mx"},
    (RTL, MX): {"color": "#000000", "linewidth": 1.2, "linestyle": (0, (4, 2)), "label": "RTL against mx"},
    (INTERPRETER, FP64): {"color": "#009e73", "linewidth": 1.2, "linestyle": "--", "label": "interpreter against fp64"},
}
"""What is drawn, in this order; the interpreter against mx repeats the format's curve and is left out."""
LEAST = 1e-7


class PlotError(RuntimeError):
    """The curves cannot be drawn."""


def _pyplot() -> Any:
    try:
        import matplotlib
    except ImportError as err:
        raise PlotError("no curves: matplotlib is missing; install it with pip install 'kohakutpu[plots]'") from err
    matplotlib.use("Agg")
    from matplotlib import pyplot

    return pyplot


def exceedance(errors: F64) -> tuple[F64, F64]:
    """(error, share of all elements at or above it) of every distinct error above zero, ascending."""
    finite = np.sort(errors[np.isfinite(errors) & (errors > 0)], axis=None)
    beyond = np.count_nonzero(~np.isfinite(errors))
    found, first = np.unique(finite, return_index=True)
    return found, (len(finite) - first + beyond) / errors.size


def _curve(axes: Any, row: Row) -> bool:
    x, y = exceedance(row.errors)
    if not len(x):
        return False
    style = STYLES[row.source, row.reference]
    # a curve starts with the share that is not exact and ends where nothing is left
    axes.step([min(LEAST, x[0]), *x], [y[0], *y], where="pre", **style)
    return True


def _panel(axes: Any, report: Report, tensor: Tensor, *, small: bool) -> None:
    drawn = {key: next((r for r in tensor.rows if (r.source, r.reference) == key), None) for key in STYLES}
    exact = []
    for key, row in drawn.items():
        if row is not None and not _curve(axes, row):
            exact.append(STYLES[key]["label"])
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlim(LEAST, max(1e-1, 1.5 * max(r.metrics.max for r in tensor.rows if np.isfinite(r.metrics.max))))
    axes.set_ylim(min(1e-4, 0.7 / tensor.rows[0].errors.size), 1.5)
    axes.grid(visible=True, which="major", color="#e4e4e4", linewidth=0.6)
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    name = f"{report.case.name}" + (f": {tensor.name}" if len(report.tensors) > 1 else "")
    axes.set_title(name, loc="left", fontsize=9 if small else 11)
    if report.case.norm:
        _limits(axes, report.case.norm, small=small)
    if exact and not small:
        axes.text(0.02, 0.03, "exact: " + ", ".join(exact), transform=axes.transAxes, fontsize=8, color="#555555")


def _limits(axes: Any, norm: str, *, small: bool) -> None:
    """The corners a curve of the class stays below and left of: p50, p99 and max."""
    p50, p99, top, *_ = LIMITS[norm]
    least = axes.get_ylim()[0]
    axes.plot([p50, p99, top], [0.5, 0.01, least * 1.15], linestyle="", marker="v", color="#cc0000", clip_on=False)
    label = {"textcoords": "offset points", "fontsize": 8, "color": "#cc0000"}
    if not small:
        for x, y, text in ((p50, 0.5, "p50"), (p99, 0.01, "p99"), (top, least * 1.15, "max")):
            axes.annotate(f"{text}, class {norm}", (x, y), (6, 3), **label)


def draw(reports: Sequence[Report], folder: Path) -> dict[str, str]:
    """Write one picture a case and one of all cases.

    Returns:
        File names by case, "" for the picture of all.

    Raises:
        PlotError: matplotlib is missing.
    """
    pyplot = _pyplot()
    files = {}
    for report in reports:
        count = len(report.tensors)
        figure, grid = pyplot.subplots(1, count, figsize=(7.2 * count, 4.6), squeeze=False, layout="constrained")
        for axes, tensor in zip(grid[0], report.tensors, strict=True):
            _panel(axes, report, tensor, small=False)
            axes.set_xlabel("error relative to the largest wanted value")
            axes.set_ylabel("share of elements above")
            if axes.get_legend_handles_labels()[1]:
                axes.legend(fontsize=8, frameon=False, loc="lower left", bbox_to_anchor=(0.0, 0.06))
        files[report.case.name] = _save(figure, folder, _file(report.case.name))
        pyplot.close(figure)
    if len(reports) > 1:
        files[""] = _overview(pyplot, reports, folder)
    return files


def _overview(pyplot: Any, reports: Sequence[Report], folder: Path) -> str:
    panels = [(r, t) for r in reports for t in r.tensors]
    columns = min(4, len(panels))
    rows = -(-len(panels) // columns)
    figure, grid = pyplot.subplots(
        rows, columns, figsize=(3.5 * columns, 2.5 * rows + 0.6), squeeze=False, layout="constrained"
    )
    for axes, (report, tensor) in zip(grid.flat, panels, strict=False):
        _panel(axes, report, tensor, small=True)
        axes.tick_params(labelsize=8)
    for place, axes in enumerate(grid.flat):
        if place >= len(panels):
            axes.set_axis_off()
        # the lowest panel of a column carries the labels
        axes.tick_params(labelbottom=place + columns >= len(panels))
    seen = {line.get_label(): line for axes in grid.flat for line in axes.lines if not line.get_label().startswith("_")}
    figure.legend(seen.values(), seen.keys(), loc="outside upper center", ncols=3, frameon=False, fontsize=9)
    figure.supxlabel("error relative to the largest wanted value", fontsize=10)
    figure.supylabel("share of elements above", fontsize=10)
    name = _save(figure, folder, "overview")
    pyplot.close(figure)
    return name


def _file(name: str) -> str:
    return "".join(c if c.isalnum() else "_" for c in name)


def _save(figure: Any, folder: Path, stem: str) -> str:
    figure.savefig(folder / f"{stem}.png", dpi=110)
    return f"{stem}.png"
