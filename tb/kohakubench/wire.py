# SPDX-License-Identifier: Apache-2.0
"""Framing between a live simulation and its client: a JSON head and raw bytes."""

from __future__ import annotations

import json
import socket
import struct
from typing import Any

_HEAD = struct.Struct("<II")


def send(sock: socket.socket, head: dict[str, Any], blob: bytes = b"") -> None:
    """Send one message."""
    text = json.dumps(head, separators=(",", ":")).encode()
    sock.sendall(_HEAD.pack(len(text), len(blob)) + text + blob)


def receive(sock: socket.socket) -> tuple[dict[str, Any], bytes]:
    """Receive one message.

    Raises:
        ConnectionError: the other side is gone.
    """
    n_text, n_blob = _HEAD.unpack(_exactly(sock, _HEAD.size))
    head: dict[str, Any] = json.loads(_exactly(sock, n_text))
    return head, _exactly(sock, n_blob)


def _exactly(sock: socket.socket, n: int) -> bytes:
    parts = []
    while n:
        part = sock.recv(min(n, 1 << 20))
        if not part:
            raise ConnectionError("the simulation ended")
        parts.append(part)
        n -= len(part)
    return b"".join(parts)
