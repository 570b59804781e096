# SPDX-License-Identifier: Apache-2.0
"""The mesh as links that messages occupy (docs/spec/fabric.md 3.2, 3.3); tag ``model``.

A message keeps its flits together: it takes a link when the link is free, holds it for a cycle a flit, and its head
is at the next link :data:`HOP` cycles later. Input queues are as deep as needed, so a blocked message holds nothing
behind it back.
"""

from __future__ import annotations

from collections import Counter

LAYER = "leaf"

HOP = 3
"""Cycles from an input of a router to its output when nothing competes."""

Node = tuple[int, int]
Link = tuple[Node, Node]


class Network:
    """Links of one mesh and until when each is taken.

    Args:
        grid: router columns and rows; routers are (1, 1) to ``grid``, endpoints around them or at them.
    """

    def __init__(self, grid: Node) -> None:
        self.grid = grid
        self._free: dict[Link, int] = {}
        self.taken: Counter[Link] = Counter()

    def router(self, node: Node) -> Node:
        """The router an endpoint is attached to."""
        (x, y), (nx, ny) = node, self.grid
        return min(max(x, 1), nx), min(max(y, 1), ny)

    def route(self, source: Node, target: Node) -> list[Link]:
        """Links from endpoint to endpoint: in, along the row, along the column, out.

        The link between an endpoint and its router is named by both, also where they share a coordinate.
        """
        at, goal = self.router(source), self.router(target)
        path: list[Link] = [((-source[0] - 1, -source[1] - 1), at)]
        while at != goal:
            step = at
            if at[0] != goal[0]:
                at = (at[0] + (1 if goal[0] > at[0] else -1), at[1])
            else:
                at = (at[0], at[1] + (1 if goal[1] > at[1] else -1))
            path.append((step, at))
        return [*path, (goal, (-target[0] - 1, -target[1] - 1))]

    def send(self, source: Node, target: Node, flits: int, at: int) -> int:
        """Send a message offered at cycle ``at``; the cycle behind the arrival of its last flit."""
        head = at
        for link in self.route(source, target):
            head = max(head, self._free.get(link, 0))
            self._free[link] = head + flits
            self.taken[link] += flits
            head += HOP
        return head - HOP + flits

    def accepted(self, source: Node) -> int:
        """When everything sent from ``source`` so far has left it."""
        return self._free.get(self.route(source, source)[0], 0)


def link_text(link: Link) -> str:
    """A link by the coordinates of its ends, an endpoint in brackets."""

    def end(node: Node) -> str:
        return f"({node[0]},{node[1]})" if node[0] > 0 else f"[{-node[0] - 1},{-node[1] - 1}]"

    return f"{end(link[0])}->{end(link[1])}"
