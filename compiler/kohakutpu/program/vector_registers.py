# SPDX-License-Identifier: Apache-2.0
"""Order of a chain's operations and the registers that hold their values (docs/spec/compiler.md 9.4)."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import zip_longest

from kohakutpu.chain import COMPARES, FOLDS, ROUND, Chain
from kohakutpu.dtypes import e8m15_bits
from kohakutpu.errors import CompileError
from kohakutpu.machine_spec import MachineSpec
from kohakutpu.program.vector_work import LaneWork

LAYER = "L1"

RUNNING, SCRATCH = 7, 8
"""The running result of a chain, and a register kept free beside it."""

_FIRST_FOLD, _LAST_FOLD, _FIRST_CONST = 1, 3, 4
_BUILT_IN = {"0.0": "K0", "1.0": "K1", "-1.0": "K2"}
"""By printed value, because 0.0 equals -0.0, which no register K holds."""
MAX_INTERLEAVE = 4

SLOTS = {
    "neg": ("VNEG", "a"),
    "absolute": ("VABS", "a"),
    "exp2": ("VEXP2", "a"),
    "log2": ("VLOG2", "a"),
    "recip": ("VINV", "a"),
    "rsqrt": ("VRSQRT", "a"),
    "add": ("VADD", "ac"),
    "sub": ("VSUB", "ac"),
    "mul": ("VMUL", "ab"),
    "maximum": ("VMAX", "ab"),
    "minimum": ("VMIN", "ab"),
    "less": ("VCMPLT", "ab"),
    "greater": ("VCMPGT", "ab"),
    "equal": ("VCMPEQ", "ab"),
    "fma": ("VFMA", "abc"),
    "where": ("VSEL", "cab"),
    ROUND: ("VCVT", "a"),
}
"""Word of an operation and the slot of each of its arguments."""


def by_compare(chain: Chain, node: int) -> bool:
    """True if ``node`` is a ``where`` that a compare decides."""
    n = chain.nodes[node]
    return n.op == "where" and chain.nodes[n.args[0]].op in COMPARES


def order_of(chain: Chain) -> list[int]:
    """Operations in the order they are computed: the deeper argument first, a result as late as it can be."""
    depth: list[int] = []
    for n in chain.nodes:
        depth.append(1 + max((depth[a] for a in n.args), default=-1))
    done: list[int] = []
    seen: set[int] = set()

    def visit(i: int) -> None:
        if i in seen or chain.nodes[i].op in ("operand", "const"):
            return
        seen.add(i)
        for a in sorted(chain.nodes[i].args, key=lambda a: -depth[a]):
            visit(a)
        done.append(i)

    for r in chain.results:
        visit(r)
    return done


@dataclass
class Registers:
    """Where every value of a chain lives, for each of ``interleave`` steps that alternate.

    ``vector[i][s]`` is the register of node i in place s, ``scalar[i][s]`` that of a fold, ``predicate[i][s]`` that
    of a compare; constants have a source text for all places.
    """

    order: list[int]
    interleave: int = 1
    vector: dict[int, list[int]] = field(default_factory=dict)
    scalar: dict[int, list[int]] = field(default_factory=dict)
    predicate: dict[int, list[int]] = field(default_factory=dict)
    constant: dict[int, str] = field(default_factory=dict)
    immediates: list[tuple[str, int]] = field(default_factory=list)
    running: set[int] = field(default_factory=set)


def allocate(work: LaneWork, machine: MachineSpec) -> Registers:
    """Registers of every value, with as many alternating steps as asked for or as fit.

    Raises:
        CompileError: a chain whose values exceed the registers, naming them.
    """
    chain = work.chain
    order = order_of(chain)
    _check_compares(chain)
    running = _running(chain, order)
    most = min(work.interleave or MAX_INTERLEAVE, work.steps)
    regs = Registers(order, running=running)
    _constants(regs, chain, machine)
    for count in range(most, 0, -1):
        problem = _place(regs, work, machine, count)
        if problem is None:
            return regs
        if work.interleave and count == most and work.interleave <= work.steps and count > 1:
            raise CompileError(f"interleave = {work.interleave}: {problem}; lower it, or 0 to let it fit")
    raise CompileError(f"{problem}; store an intermediate result")


def _check_compares(chain: Chain) -> None:
    for n in chain.nodes:
        for position, a in enumerate(n.args):
            if chain.nodes[a].op in COMPARES and not (n.op == "where" and position == 0):
                raise CompileError(
                    f"{chain.nodes[a].op} feeds {n.op}; a comparison only decides a where, write where(c, 1, 0)"
                )
    if any(chain.nodes[r].op in COMPARES for r in chain.results):
        raise CompileError("a comparison is stored; it only decides a where, write where(c, 1, 0)")


def _running(chain: Chain, order: list[int]) -> set[int]:
    """Nodes read once, by the operation that follows: they pass through one register."""
    uses = chain.uses()
    out = set()
    for i, following in zip_longest(order, order[1:], fillvalue=-1):
        n = chain.nodes[i]
        if n.op in FOLDS or n.op in COMPARES or by_compare(chain, i) or uses[i] != 1:
            continue
        if i in chain.results or (following >= 0 and i in chain.nodes[following].args):
            out.add(i)
    return out


def _constants(regs: Registers, chain: Chain, machine: MachineSpec) -> None:
    held: dict[int, str] = {}
    for i, n in enumerate(chain.nodes):
        if n.op != "const":
            continue
        built_in = _BUILT_IN.get(repr(float(n.value)))
        if built_in is not None:
            regs.constant[i] = built_in
            continue
        try:
            code = e8m15_bits(n.value)
        except ValueError as err:
            raise CompileError(f"constant {n.value}: {err}") from err
        if code not in held:
            held[code] = f"S{_FIRST_CONST + len(held)}"
        regs.constant[i] = held[code]
    room = machine.sregs - _FIRST_CONST
    if len(held) > room:
        raise CompileError(
            f"{len(held)} constants; a kernel keeps {room} in scalar registers beside 0, 1 and -1, "
            "store an intermediate result"
        )
    regs.immediates = [(name, code) for code, name in held.items()]


def _place(regs: Registers, work: LaneWork, machine: MachineSpec, count: int) -> str | None:
    """Registers for ``count`` alternating steps; a sentence if they do not fit."""
    chain = work.chain
    folds = [i for i in regs.order if chain.nodes[i].op in FOLDS]
    scalars = list(range(_FIRST_FOLD, _LAST_FOLD + 1))
    scalars += list(range(machine.sregs - 1, _FIRST_CONST + len(regs.immediates) - 1, -1))
    if len(folds) * count > len(scalars):
        return f"{len(folds)} row reductions of {count} steps exceed the {len(scalars)} free scalar registers"
    regs.scalar = {f: scalars[k * count : (k + 1) * count] for k, f in enumerate(folds)}
    compares = [i for i in regs.order if chain.nodes[i].op in COMPARES]
    if len(compares) * count > machine.pregs:
        return f"{len(compares)} comparisons of {count} steps exceed the {machine.pregs} predicate registers"
    regs.predicate = {c: list(range(k * count, (k + 1) * count)) for k, c in enumerate(compares)}
    operands = {n.index: i for i, n in enumerate(chain.nodes) if n.op == "operand"}
    lifted = [
        i
        for i in regs.order
        if i not in regs.running
        and chain.nodes[i].op not in COMPARES
        and (chain.nodes[i].op not in FOLDS or broadcasts(chain, i, machine))
    ]
    free = [r for r in range(machine.vregs) if count > 1 or r not in (RUNNING, SCRATCH)]
    need = sum(1 if work.streams[k].steady else count for k in operands) + count * len(lifted)
    if count > 1:
        need += count
    if need > len(free):
        return (
            f"{len(operands)} operands and {len(lifted)} values kept for later"
            + (f", {count} steps at once," if count > 1 else "")
            + f" need {need} vector registers; {len(free)} are free"
        )
    take = iter(free)
    regs.vector = {}
    for k in sorted(operands):
        wanted = 1 if work.streams[k].steady else count
        mine = [next(take) for _ in range(wanted)]
        regs.vector[operands[k]] = mine * (count // wanted)
    passing = [RUNNING] if count == 1 else [next(take) for _ in range(count)]
    for i in regs.running:
        regs.vector[i] = passing
    for i in lifted:
        regs.vector[i] = [next(take) for _ in range(count)]
    regs.interleave = count
    return None


def broadcasts(chain: Chain, fold: int, machine: MachineSpec) -> bool:
    """True if a reduced value is read where this machine takes no scalar register, so it needs a vector."""
    for n in chain.nodes:
        for position, a in enumerate(n.args):
            if a == fold and (n.op in FOLDS or n.op == "where"):
                return True
            if a == fold and f"{SLOTS[n.op][1][position]}S" not in machine.vc_const_sources:
                return True
    return fold in chain.results
