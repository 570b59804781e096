# SPDX-License-Identifier: Apache-2.0
"""Client of a live simulation: starts the simulator once and keeps talking to it."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any

from kohakubench import wire
from kohakubench.build import SIM_BUILD, Model, Options, build
from kohakubench.machine_top import tap_names
from kohakubench.machines import DRAM_WORDS, machine_bench
from kohakubench.run import Request, environment
from kohakudriver.generated import ADDR_W, ADDRESS_MAP
from kohakudriver.memory import HostWindow
from kohakutpu.mesh import MeshError, find, load

Progress = Callable[[int], None]
STAGING = ADDRESS_MAP["staging"][0]
_DECERR = 3


class SessionError(RuntimeError):
    """The simulator did not start, ended early or refused a request."""


class RtlSession:
    """A machine's RTL under Verilator, driven over a local socket.

    Args:
        machine: name of a picture below ``spec/machines``, or the path of a picture file that ends in ``.toml``.
        waves: record waves of the whole session into the run directory.
        checked: build with a link checker on every link.
        dram: behaviour of the DRAM model, see :meth:`kohakubench.dram.Dram.configure`.
        dram_params: parameters of the DRAM model, for example ``{"SINGLE": 1}``.
        seed: seed of the DRAM model's random choices.
    """

    def __init__(
        self,
        machine: str,
        *,
        waves: bool = False,
        checked: bool = False,
        dram: dict[str, int] | None = None,
        dram_params: dict[str, int] | None = None,
        seed: int = 1,
    ) -> None:
        try:
            picture = find(machine)
            name = load(picture).name
        except MeshError as err:
            raise SessionError(str(err)) from err
        bench = replace(
            machine_bench(f"session-{name}", machine, checked=checked, dram=dram_params or {}),
            top=f"tb_{name}",
            module="kohakubench.session_server",
            program="tb/kohakubench/session_main.cpp",
        )
        self.machine = name
        self.memory_bytes = 32 * DRAM_WORDS
        self._signals: list[int] = []
        self.picture = picture
        self.model: Model = build(bench, None, Options(waves=waves))
        self.description: dict[str, Any] = json.loads(
            (self.model.directory / "machine" / f"{name}.machine.json").read_text(encoding="utf-8")
        )
        SIM_BUILD.joinpath("runs").mkdir(parents=True, exist_ok=True)
        self.run_dir = Path(tempfile.mkdtemp(prefix=f"session-{name}-", dir=SIM_BUILD / "runs"))
        self._start(bench, waves, seed)
        if dram is not None:
            self.configure(**dram)

    def _start(self, bench: Any, waves: bool, seed: int) -> None:
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        # a socket path has a length limit that a deep checkout exceeds
        self._socket_dir = tempfile.TemporaryDirectory(prefix="ktpu-")
        path = os.path.join(self._socket_dir.name, "s")
        listener.bind(path)
        listener.listen(1)
        listener.settimeout(0.2)
        env = environment(bench, Request(seed=seed), self.run_dir)
        env.update(KOHAKU_WAVES=str(int(waves)), KOHAKU_SOCKET=path, KOHAKU_DRAM_WORDS=str(DRAM_WORDS))
        self._log = (self.run_dir / "sim.log").open("w", encoding="utf-8")
        command = [str(self.model.executable), *(["--trace"] if waves else [])]
        self._proc = subprocess.Popen(
            command, cwd=self.run_dir, env=env, stdout=self._log, stderr=subprocess.STDOUT, start_new_session=True
        )
        deadline = time.monotonic() + 60
        while True:
            with contextlib.suppress(TimeoutError):
                self._sock, _ = listener.accept()
                break
            if self._proc.poll() is not None or time.monotonic() > deadline:
                self.close()
                raise SessionError(f"the simulator did not start:\n{self._tail()}\nlog: {self.run_dir / 'sim.log'}")
        listener.close()
        try:
            hello, _ = wire.receive(self._sock)
        except ConnectionError as err:
            tail = self._tail()
            self.close()
            raise SessionError(f"the simulator ended before it was ready:\n{tail}") from err
        if not hello.get("ok"):
            raise SessionError(f"unexpected greeting {hello}")

    def _tail(self) -> str:
        self._log.flush()
        return "\n".join((self.run_dir / "sim.log").read_text(errors="replace").splitlines()[-12:])

    def _ask(
        self, op: str, blob: bytes = b"", on_progress: Progress | None = None, **head: Any
    ) -> tuple[dict[str, Any], bytes]:
        try:
            wire.send(self._sock, {"op": op, **head}, blob)
            while True:
                reply, data = wire.receive(self._sock)
                if "progress" not in reply:
                    break
                if on_progress:
                    on_progress(reply["progress"])
        except (ConnectionError, BrokenPipeError) as err:
            raise SessionError(f"the simulator ended during {op!r}:\n{self._tail()}") from err
        if not reply["ok"]:
            raise SessionError(f"{op}: {reply['error']}")
        return reply, data

    def configure(self, **dram: int) -> None:
        """Change the DRAM model's behaviour."""
        self._ask("configure", dram=dram)

    def write64(self, writes: Sequence[tuple[int, int]]) -> None:
        """Write control registers (host address, value) in order."""
        if writes:
            self._ask("write", writes=[list(w) for w in writes])

    def read64(self, addresses: Sequence[int]) -> list[int]:
        """Read control registers in order."""
        reply, _ = self._ask("read", addresses=list(addresses))
        return [int(v) for v in reply["values"]]

    def mem_write(self, address: int, data: bytes) -> None:
        """Place whole words: in DRAM by the backdoor, in no simulated time, in the staging store by the window."""
        if address >= STAGING:
            HostWindow(self).write(address, data)
        else:
            self._ask("mem_write", data, address=address)

    def mem_read(self, address: int, n: int) -> bytes:
        """Whole words: of DRAM by the backdoor, of the staging store by the window."""
        if address >= STAGING:
            return HostWindow(self).read(address, n)
        _, data = self._ask("mem_read", address=address, n=n)
        return data

    def window_write(self, address: int, data: bytes, strobe: bytes | None = None) -> int:
        """One burst of the memory window at a host address: the AXI response.

        Raises:
            SessionError: the machine's top has no memory window.
        """
        inside = self._inside(address)
        if inside is None:
            return _DECERR
        reply, _ = self._ask("window_write", data + (strobe or b""), address=inside, strobed=strobe is not None)
        return int(reply["response"])

    def window_read(self, address: int, n: int) -> tuple[bytes, int]:
        """One read burst of the memory window at a host address: (bytes, AXI response).

        Raises:
            SessionError: the machine's top has no memory window.
        """
        inside = self._inside(address)
        if inside is None:
            return bytes(n), _DECERR
        reply, data = self._ask("window_read", address=inside, n=n)
        return data, int(reply["response"])

    def _inside(self, address: int) -> int | None:
        """The 40 bits the mesh's slave sees, None if the prefix selects another slave."""
        prefix, inside = divmod(address, 1 << ADDR_W)
        return inside if prefix == int(self.description.get("mesh_id", 0)) + 1 else None

    def wait_done(self, limit: int, progress: Progress | None = None) -> bool:
        """Run until the engine is done; False when ``limit`` cycles passed before."""
        reply, _ = self._ask("wait", on_progress=progress, limit=limit, progress=progress is not None)
        return bool(reply["done"])

    def idle(self, cycles: int) -> None:
        """Let some cycles pass."""
        self._ask("cycles", n=cycles)

    def marks(self) -> dict[str, int]:
        """Cycle counts: now, first kick since the last call, last signal taken by the orchestrator."""
        reply, _ = self._ask("marks")
        return {k: int(reply[k]) for k in ("cycle", "first_kick", "last_signal")}

    def taps(self, names: Sequence[str] | None = None) -> dict[str, list[tuple[int, int]]]:
        """Recorded transfers of the links, oldest first, as (cycle, flit)."""
        reply, _ = self._ask("taps", names=list(names or tap_names(self.picture)))
        return {n: [(c, int(f, 16)) for c, f in t] for n, t in reply["taps"].items()}

    def signals(self) -> list[int]:
        """Every CU_SIGNAL flit the orchestrator has taken, oldest first.

        Raises:
            SessionError: more signals since the last call than the tap keeps.
        """
        reply, _ = self._ask("taps", names=["signals"])
        kept, count = reply["taps"]["signals"], int(reply["counts"]["signals"])
        fresh = count - len(self._signals)
        if fresh > len(kept):
            raise SessionError(f"{fresh} signals since the last look, the tap keeps {len(kept)}")
        self._signals += [int(f, 16) for _, f in kept[len(kept) - fresh :]]
        return self._signals

    def reset(self) -> None:
        """Reset the machine; memory keeps its contents."""
        self._ask("reset")

    def close(self) -> None:
        """End the simulator."""
        if getattr(self, "_sock", None) is not None:
            with contextlib.suppress(OSError, ConnectionError):
                wire.send(self._sock, {"op": "close"})
                wire.receive(self._sock)
            self._sock.close()
        if getattr(self, "_proc", None) is not None:
            try:
                self._proc.wait(timeout=10)
            except subprocess.TimeoutExpired:
                os.killpg(self._proc.pid, signal.SIGKILL)
                self._proc.wait()
        self._log.close()
        self._socket_dir.cleanup()

    def __enter__(self) -> RtlSession:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
