# SPDX-License-Identifier: Apache-2.0
"""Random programs of the vector core, for the model's tests and the bench of the whole core.

A `Case` is what one RUN needs: instruction words, descriptors, memory. Most programs are legal from end to end;
`faulty` of them have one word, descriptor or memory word spoiled. Fill sources and drain targets never overlap, and
nothing depends on the order of traffic, so a case has one outcome whatever the timing.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from kohakutpu.isa import vector as isa
from kohakutpu.isa.generated import LaneMode, PredicateMode, Reduction, Source, VectorDtype
from kohakutpu.isa.generated import VectorOp as Op

SOURCE, TARGET, LOW = 0x1_0000, 0x8_0000, 0x0_0000
SOURCE_WORDS = 512
PEER = (3, 1)
_L1_DESCRIPTORS, _FILL, _DRAIN, _PEER = (0, 1, 2), (3, 4), (5, 6), 7
_COMPARES = (Op.VCMPLT, Op.VCMPGT, Op.VCMPEQ)
_LENGTHS = (1, 7, 15, 16, 17, 31, 32, 33, 48, 64, 80, 96, 112, 127, 128)
_VALUES = (0x000000, 0x3F8000, 0xBF8000, 0x400000, 0x3F0000, 0x7F8000, 0xFF8000, 0x7FC000, 0x800000, 0x00007F)
MAX_WORDS = 300
"""Longest program; it leaves room in instruction memory for a bench's own kernel."""

Descriptor = tuple[int, list[int], list[int]]
"""Base, four strides, four bounds."""


@dataclass
class Case:
    """One RUN from address `pc`."""

    words: list[int]
    pc: int
    descriptors: list[Descriptor]
    read_errors: set[int] = field(default_factory=set)


def random_word(rng: random.Random) -> int:
    """256 bits that read as ordinary numbers in FP16 or FP32, with specials among them."""
    kind = rng.randrange(4)
    if kind == 0:
        return rng.getrandbits(256)
    if kind == 1:
        halves = [rng.randrange(2) << 15 | rng.randrange(8, 23) << 10 | rng.getrandbits(10) for _ in range(16)]
        if rng.randrange(4) == 0:
            halves[rng.randrange(16)] = rng.choice((0, 0x8000, 0x7C00, 0xFC00, 0x7E01, 1, 0x83FF))
        return sum(h << 16 * n for n, h in enumerate(halves))
    singles = [rng.randrange(2) << 31 | rng.randrange(110, 145) << 23 | rng.getrandbits(23) for _ in range(8)]
    if rng.randrange(4) == 0:
        singles[rng.randrange(8)] = rng.choice((0, 0x8000_0000, 0x7F80_0000, 0xFF80_0000, 0x7FC0_0000, 0x7F00_0000))
    return sum(w << 32 * n for n, w in enumerate(singles))


def walk_span(desc: Descriptor, count: int) -> tuple[int, int]:
    """Lowest and highest of the first `count` offsets of a walk without its base."""
    low = high = 0
    _, strides, bounds = desc
    for step in range(count):
        address, rest = 0, step
        for stride, bound in zip(strides, bounds, strict=True):
            rest, i = divmod(rest, max(bound, 1))
            address += i * stride
        low, high = min(low, address), max(high, address)
    return low, high


class ProgramMaker:
    """Random cases from one seed; `quantising` drains only for a core with MX_STORE."""

    def __init__(self, seed: int, quantising: bool = False) -> None:
        self.rng = random.Random(seed)
        self.quantising = quantising
        self.words: list[int] = []
        self.mode = LaneMode.FLAT
        self.vl: int | None = None

    def case(self, faulty: float = 0.15, length: int = 14) -> Case:
        """One program of about `length` instructions."""
        rng = self.rng
        self.words, self.mode, self.vl = [], LaneMode.FLAT, None
        descriptors = self._descriptors()
        self._emit(Op.VSETMODE, mode=LaneMode.FLAT)
        self._set_length()
        for reg in rng.sample(range(16), 4):
            self._emit(Op.VLD, dtype=rng.choice((1, 2)), vd=reg, ad=rng.choice(_L1_DESCRIPTORS))
        for _ in range(rng.randrange(2, length)):
            self._instruction()
            if len(self.words) > MAX_WORDS - 40:
                break
        self._emit(Op.VHALT)
        case = Case(self.words, 0, descriptors)
        if rng.random() < faulty:
            self._spoil(case)
        case.pc = rng.choice((0, 0, 0, rng.randrange(MAX_WORDS - len(self.words) + 1)))
        return case

    # ------------------------------------------------------------ instructions

    def _emit(self, op: Op, **fields: int) -> None:
        """Append a word; one in four has random bits where the format has none, which changes nothing."""
        word = isa.encode(op, raw=True, **fields)
        if self.rng.randrange(4) == 0:
            for spec in isa.word_codec(op).fields.values():
                if spec.reserved:
                    word |= self.rng.getrandbits(spec.width) << spec.lsb
        self.words.append(word)

    def _reg(self) -> int:
        """A register number; few of them, so programs reuse registers."""
        return self.rng.choice((0, 1, 2, 3, 4, self.rng.randrange(16)))

    def _instruction(self) -> None:
        rng = self.rng
        makers = (
            (40, self._arithmetic),
            (6, self._load),
            (5, self._store),
            (3, self._convert),
            (4, self._shuffle),
            (5, self._broadcast),
            (6, self._reduction),
            (5, self._immediate),
            (4, self._set_length),
            (5, self._set_mode),
            (5, self._loop),
            (4, self._fill),
            (3, self._drain),
            (2, lambda: self._emit(Op.VBAR)),
        )
        rng.choices([m for _, m in makers], [w for w, _ in makers])[0]()

    def _body(self) -> None:
        """An instruction that may stand in a loop."""
        rng = self.rng
        makers = (self._load, self._store, self._convert, self._shuffle, self._broadcast, self._reduction)
        (self._arithmetic if rng.randrange(3) else rng.choice((*makers, self._immediate)))()

    def _arithmetic(self) -> None:
        """One FLAT word or one chain group; in TREE mode the mode changes first."""
        if self.mode == LaneMode.TREE:
            self._set_mode(self.rng.choice((LaneMode.FLAT, LaneMode.D2, LaneMode.D4)))
        depth = {LaneMode.FLAT: 1, LaneMode.D2: 2, LaneMode.D4: 4}[self.mode]
        for n in range(depth):
            self._alu_word(n, depth)

    def _alu_word(self, position: int, depth: int) -> None:
        rng = self.rng
        compare = rng.randrange(6) == 0
        op = rng.choice(_COMPARES) if compare else Op(rng.choice([*range(0x0B), *range(0x0E, 0x12)]))
        choices = (Source.V, Source.V, Source.V, Source.S, Source.K) if position == 0 else (Source.C, Source.C, 1, 3)
        fields = {}
        for slot in "abc":
            sel = rng.choice(choices)
            fields[f"s{slot}"] = sel
            fields[f"v{slot}"] = rng.randrange(4) if sel == Source.K else self._reg()
        fields["pr"] = rng.randrange(4)
        if position == depth - 1:
            fields["vd"] = self._reg()
            if not compare:
                fields["pm"] = rng.choice((0, 0, PredicateMode.SET, PredicateMode.CLEAR))
        self._emit(op, **fields)

    def _memory_fields(self) -> dict[str, int]:
        rng = self.rng
        off = rng.choice((0, 0, 0, 1, 2, -1, rng.randrange(-8, 9)))
        return {"dtype": rng.choice(list(VectorDtype)), "ad": rng.choice(_L1_DESCRIPTORS), "off": off}

    def _load(self) -> None:
        self._emit(Op.VLD, vd=self._reg(), **self._memory_fields())

    def _store(self) -> None:
        self._emit(Op.VST, vd=self._reg(), **self._memory_fields())

    def _convert(self) -> None:
        self._emit(Op.VCVT, vd=self._reg(), va=self._reg(), dtype=self.rng.choice(list(VectorDtype)))

    def _shuffle(self) -> None:
        rng = self.rng
        self._emit(Op.VSHUF, vd=self._reg(), va=self._reg(), sk=self._reg(), pm=rng.randrange(3), pr=rng.randrange(4))

    def _broadcast(self) -> None:
        self._emit(Op.VBCAST, sa=self.rng.randrange(2), d=self._reg(), a=self._reg())

    def _reduction(self) -> None:
        rng = self.rng
        tree = self.mode == LaneMode.TREE and self.vl is not None and self.vl % 16 == 0
        kind = rng.choice(list(Reduction) if tree else [Reduction.ANY, Reduction.ALL])
        va = self._reg()
        vb = va if kind == Reduction.SUMSQ else self._reg()
        self._emit(Op.VRED, kind=kind, sd=self._reg(), va=va, vb=vb, pr=rng.randrange(4))

    def _immediate(self) -> None:
        rng = self.rng
        value = rng.choice(
            (rng.getrandbits(24), rng.choice(_VALUES), rng.randrange(110, 140) << 15 | rng.getrandbits(15))
        )
        self._emit(Op.VSETI, sel=rng.choice((0, 0, 0, 3)), sd=self._reg())
        self.words.append(isa.immediate(value))

    def _scalar(self, value: int) -> int:
        """Load a scalar register with a small number; its index."""
        sd = self._reg()
        self._emit(Op.VSETI, sel=0, sd=sd)
        self.words.append(isa.immediate(value))
        return sd

    def _set_length(self) -> None:
        self.vl = self.rng.choice(_LENGTHS)
        self._emit(Op.VSETVL, sa=self._scalar(self.vl))

    def _set_mode(self, mode: LaneMode | None = None) -> None:
        self.mode = self.rng.choice(list(LaneMode)) if mode is None else mode
        self._emit(Op.VSETMODE, mode=self.mode)

    def _loop(self) -> None:
        """A loop whose body is whole instructions."""
        rng = self.rng
        if self.mode == LaneMode.TREE and rng.randrange(2):
            self._set_mode(LaneMode.D2)
        sa = self._scalar(rng.choice((1, 2, 3, 5)))
        at = len(self.words)
        self.words.append(0)
        before = self.mode
        room = 15
        while room and rng.randrange(4):
            mark = len(self.words)
            self._body()
            if len(self.words) - at - 1 > 15 or self.mode != before:
                del self.words[mark:]
                self.mode = before
                break
            room = 15 - (len(self.words) - at - 1)
        if len(self.words) == at + 1:
            self._convert()
        self.words[at] = isa.encode(Op.VLOOP, sa=sa, body=len(self.words) - at - 1)

    def _fill(self) -> None:
        self._emit(Op.VFILL, ad=self.rng.choice(_FILL), l1=self.rng.randrange(0, 512 - 48))

    def _drain(self) -> None:
        rng = self.rng
        l1 = rng.randrange(0, 512 - 48)
        if self.quantising and rng.randrange(2):
            fields = {"mx": 1, "buf": rng.randrange(2), "l1": rng.choice((l1, l1, rng.randrange(257)))}
            if rng.randrange(3) == 0:
                fields |= {"node": 1, "dst_x": PEER[0], "dst_y": PEER[1], "signal": rng.randrange(2)}
            self._emit(Op.VDRAIN, ad=_PEER if "node" in fields else rng.choice(_DRAIN), **fields)
        elif rng.randrange(3) == 0:
            fields = {
                "node": 1,
                "dst_x": PEER[0],
                "dst_y": PEER[1],
                "buf": rng.randrange(3),
                "signal": rng.randrange(2),
            }
            self._emit(Op.VDRAIN, ad=_PEER, l1=l1, **fields)
        else:
            self._emit(Op.VDRAIN, ad=rng.choice(_DRAIN), l1=l1)

    # ------------------------------------------------------------ descriptors

    def _descriptors(self) -> list[Descriptor]:
        out = [self._l1_walk() for _ in _L1_DESCRIPTORS]
        out += [self._memory_walk(SOURCE, SOURCE_WORDS) for _ in _FILL]
        out += [self._memory_walk(TARGET, 1 << 12) for _ in _DRAIN]
        n = self.rng.choice((1, 2, 8, 31, 48))
        base = self.rng.randrange(0, 65536 - n) | self.rng.randrange(256) << 16
        if self.rng.randrange(3) == 0:
            base |= self.rng.randrange(1, 256) << 26 | self.rng.randrange(4) << 24 | 0x11 << 16
        return [*out, (base, [1, 0, 0, 0], [n, 1, 1, 1])]

    def _l1_walk(self) -> Descriptor:
        rng = self.rng
        strides = [rng.choice((1, 1, 1, 2, 0, -1)), rng.choice((0, 1, 8, -8)), rng.choice((0, 5)), 0]
        bounds = [rng.choice((1, 2, 4, 8, 16, 0)), rng.choice((1, 1, 2, 3)), rng.choice((1, 1, 2)), rng.choice((0, 1))]
        desc: Descriptor = (0, strides, bounds)
        low, high = walk_span(desc, 16)
        return rng.randrange(8 - low, 504 - high), strides, bounds

    def _memory_walk(self, base: int, room: int) -> Descriptor:
        rng = self.rng
        bounds = [rng.choice((1, 2, 3, 8, 9, 20)), rng.choice((0, 1, 2)), 1, 1]
        strides = [32 * rng.choice((1, 1, 1, 2, -1)), 32 * rng.choice((rng.randrange(20, 40), 8, -24)), 0, 0]
        desc: Descriptor = (0, strides, bounds)
        count = max(bounds[0], 1) * max(bounds[1], 1)
        low, high = walk_span(desc, count)
        first = rng.randrange(-low // 32, room - high // 32)
        return base + 32 * first, strides, bounds

    # ------------------------------------------------------------ faults

    def _spoil(self, case: Case) -> None:
        """Break one thing, and make sure that a broken descriptor or memory word is used."""
        rng = self.rng
        at = rng.randrange(len(case.words))
        kind = rng.randrange(6)
        if kind <= 1:
            case.words[at] ^= 1 << rng.randrange(32)
        elif kind == 2:
            case.words[at] = rng.getrandbits(32)
        elif kind == 3:
            ad = rng.choice(_FILL)
            first, strides, bounds = case.descriptors[ad]
            case.read_errors.add(first + strides[0] * rng.randrange(max(bounds[0], 1)))
            self._use(case, ad)
        elif kind == 4:
            ad = rng.choice((*_FILL, *_DRAIN))
            base, strides, bounds = case.descriptors[ad]
            case.descriptors[ad] = rng.choice(
                (
                    (base + 4, strides, bounds),
                    (base, [strides[0] + 8, *strides[1:]], bounds),
                    (base, strides, [257, 1, 1, 1]),
                    (LOW + 32 * 5, [-32, 0, 0, 0], [12, 1, 1, 1]),
                )
            )
            self._use(case, ad)
        else:
            ad = rng.choice((*_L1_DESCRIPTORS, _PEER))
            base, strides, bounds = case.descriptors[ad]
            case.descriptors[ad] = rng.choice(((base, strides, [3, 2, 1, 1]), (base, [700, 1, 1, 1], [4, 4, 1, 1])))
            self._use(case, ad)
        self._tame(case)

    def _use(self, case: Case, ad: int) -> None:
        """Put instructions that use descriptor `ad` before the final VHALT."""
        rng = self.rng
        mark = len(self.words)
        l1 = rng.randrange(0, 512 - 48)
        if ad in _FILL:
            self._emit(Op.VFILL, ad=ad, l1=l1)
            followers = (
                lambda: self._emit(Op.VBAR),
                lambda: self._emit(Op.VFILL, ad=_FILL[0], l1=l1),
                lambda: self._emit(Op.VDRAIN, ad=_DRAIN[0], l1=l1),
                self._load,
                self._store,
                self._arithmetic,
            )
            rng.choice(followers)()
        elif ad in _DRAIN:
            self._emit(Op.VDRAIN, ad=ad, l1=l1)
        elif ad == _PEER:
            self._emit(Op.VDRAIN, ad=ad, l1=l1, node=1, dst_x=PEER[0], dst_y=PEER[1])
        else:
            self._emit(rng.choice((Op.VLD, Op.VST)), ad=ad, vd=self._reg(), dtype=rng.choice(list(VectorDtype)))
        case.words[mark - 1 :] = [*case.words[mark:], case.words[mark - 1]]

    def _tame(self, case: Case) -> None:
        """Spoiled words must not make endless loops, write fill sources or send to the core itself."""
        case.words = [self._tamed(case.words, n) for n in range(len(case.words))]

    def _tamed(self, words: list[int], n: int) -> int:
        word = words[n]
        ad = word >> 21 & 7
        match word >> 27:
            case Op.VDRAIN if word >> 24 & 1:
                return word & ~(0xFF << 13) | PEER[0] << 17 | PEER[1] << 13 if word >> 13 & 0xFF else word
            case Op.VDRAIN if ad not in _DRAIN:
                return word & ~(7 << 21) | _DRAIN[0] << 21
            case Op.VFILL if ad not in _FILL:
                return word & ~(7 << 21) | _FILL[0] << 21
            case Op.VLOOP if self._untamed(words, n):
                return isa.encode(Op.VSETMODE, mode=LaneMode.FLAT)
        return word

    @staticmethod
    def _untamed(words: list[int], n: int) -> bool:
        """True unless the loop count comes from a VSETI right before with a small value."""
        sa = words[n] >> 13 & 15
        head = words[n - 2] if n >= 2 else 0
        small = head >> 27 == Op.VSETI and head >> 25 & 3 == 0 and head >> 17 & 15 == sa and words[n - 1] < 64
        return not small
