# SPDX-License-Identifier: Apache-2.0
"""The network of docs/spec/kernels.md 1 as a tree of modules: its figures (section 2) and its memory plan.

One walk over the network notes every module (parameters, multiply-accumulates at one prompt and one image) and every
buffer and kernel call, so that the figures and the plan cannot disagree about what the network is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from kohakutpu.ints import cdiv, up
from kohakutpu.schedule.layout_conv import ConvEntry, MxConv
from kohakutpu.schedule.model_plan import ModelPlan

HEAD = 64
CONTEXT, TOKENS = 2048, 77
EMBEDDING, CONDITION, STEPS_IN = 1280, 2816, 320
WIDTHS, SIDES, DEPTHS = (320, 640, 1280), (128, 64, 32), (0, 2, 10)
ROW_TILE = 16
"""Sub-tile rows of a convolution tile; it sets the zeros behind an image."""
KEYS, QUERIES = 128, 512
"""Keys and queries of a block of attention: what a score temp holds."""


@dataclass(frozen=True)
class Module:
    """One module: its name, kind, parameters and multiply-accumulates."""

    name: str
    kind: str
    parameters: int
    macs: int = 0


@dataclass(frozen=True)
class Activation:
    """A value between modules: ``channels`` of a ``side`` x ``side`` plane, or of ``rows`` rows."""

    name: str
    channels: int
    side: int = 0
    rows: int = 0

    @property
    def positions(self) -> int:
        """Rows of the value as a matrix."""
        return self.side * self.side if self.side else self.rows

    @property
    def nbytes(self) -> int:
        """FP16 bytes in the order it is kept in: an image with its halo, or rows."""
        if self.side:
            return _image().nbytes((self.side, self.side, up(self.channels, 32)))
        return 2 * self.positions * self.channels


def _image(step: int = 1) -> ConvEntry:
    return ConvEntry(1, ROW_TILE, step)


@dataclass
class Network:
    """Modules and plan of a network under construction.

    Args:
        quantised: weights are held as MXFP7 entries, else as FP16.
    """

    plan: ModelPlan
    quantised: bool = True
    modules: list[Module] = field(default_factory=list)
    _count: Counter[str] = field(default_factory=Counter)

    # ------------------------------------------------------------------ bookkeeping
    def note(self, name: str, kind: str, parameters: int, macs: int = 0) -> None:
        """Add a module."""
        self.modules.append(Module(name, kind, parameters, macs))

    def fresh(self, stem: str) -> str:
        """A name nobody has yet."""
        self._count[stem] += 1
        return f"{stem}.{self._count[stem]}"

    def value(self, stem: str, channels: int, side: int = 0, rows: int = 0, role: str = "temp") -> Activation:
        """Declare a value."""
        v = Activation(self.fresh(stem), channels, side, rows)
        self.plan.activation(v.name, v.nbytes, role)
        return v

    def temp(self, stem: str, nbytes: int) -> str:
        """Declare a buffer that lives inside a module."""
        return self.plan.activation(self.fresh(stem), nbytes)

    def weight(self, name: str, n: int, k: int) -> None:
        """Pin a weight [n][k]."""
        elements = up(n, 4) * up(k, 32)
        self.plan.weight(name, elements if self.quantised else 2 * elements)

    # ------------------------------------------------------------------ modules
    def conv(self, x: Activation, channels: int, k: int = 3, step: int = 1) -> Activation:
        """A convolution with bias."""
        name = self.fresh(f"conv{k}")
        side = cdiv(x.side, step)
        self.weight(f"{name}.w", channels, k * k * up(x.channels, 32))
        self.plan.weight(f"{name}.b", 8 * up(channels, 4))
        macs = side * side * x.channels * channels * k * k
        self.note(name, f"conv{k}x{k}", channels * (x.channels * k * k + 1), macs)
        y = self.value(f"{name}.y", channels, side)
        if k == 1:
            entries = self.temp(f"{name}.mx", up(x.positions, 4) * up(x.channels, 32))
        else:
            order = _image(step)
            shape = (x.side, x.side, up(x.channels, 32))
            entries = self.temp(f"{name}.mx", MxConv(order, _phases(order, shape)).nbytes(shape))
        self.plan.call(f"{name} quantise", (x.name,), (entries,))
        self.plan.call(name, (entries, f"{name}.w", f"{name}.b"), (y.name,))
        return y

    def linear(self, x: Activation, channels: int, *, bias: bool = True, add: Activation | None = None) -> Activation:
        """x w^T + b, and the residual ``add``."""
        name = self.fresh("linear")
        self.weight(f"{name}.w", channels, x.channels)
        self.note(name, "linear", channels * (x.channels + bias), x.positions * x.channels * channels)
        if bias:
            self.plan.weight(f"{name}.b", 8 * up(channels, 4))
        y = self.value(f"{name}.y", channels, rows=x.positions)
        entries = self.temp(f"{name}.mx", up(x.positions, 4) * up(x.channels, 32))
        self.plan.call(f"{name} quantise", (x.name,), (entries,))
        reads = (entries, f"{name}.w", *([f"{name}.b"] if bias else []), *([add.name] if add else []))
        self.plan.call(name, reads, (y.name,))
        return y

    def norm(self, x: Activation, kind: str, parameters: int = 2) -> Activation:
        """A normalisation with gain and shift."""
        name = self.fresh(kind)
        self.note(name, kind, parameters * x.channels)
        self.plan.weight(f"{name}.w", 2 * parameters * x.channels)
        y = self.value(f"{name}.y", x.channels, x.side, x.rows)
        self.plan.call(name, (x.name, f"{name}.w"), (y.name,))
        return y

    def pass_over(self, kind: str, *operands: Activation, channels: int = 0) -> Activation:
        """An elementwise pass; the result has the shape of the first operand."""
        x = operands[0]
        name = self.fresh(kind)
        self.note(name, kind, 0)
        y = self.value(f"{name}.y", channels or x.channels, x.side, x.rows)
        self.plan.call(name, tuple(o.name for o in operands), (y.name,))
        return y

    def attention(self, q: Activation, k: Activation, v: Activation, head: int = HEAD) -> Activation:
        """softmax(q k^T) v in heads of ``head``, a block of queries and a block of keys at a time."""
        name, heads = self.fresh("attention"), q.channels // head
        lq, lkv = q.positions, k.positions
        self.note(name, "softmax", 0, 2 * heads * lq * lkv * head)
        span = heads * min(QUERIES, lq)
        inner = [self.temp(f"{name}.{t}", 2 * span * KEYS) for t in ("top", "total", "corr", "scores", "weights")]
        inner += [self.temp(f"{name}.{t}", 2 * span * head) for t in ("part", "acc")]
        inner += [self.temp(f"{name}.{t}", up(lkv, KEYS) * k.channels) for t in ("k", "v")]
        o = self.value(f"{name}.y", q.channels, rows=lq)
        self.plan.call(f"{name} blocks", (q.name, k.name, v.name), tuple(inner))
        self.plan.call(f"{name} result", tuple(inner), (o.name,))
        return o

    def count(self, kinds: Iterable[str] | str) -> int:
        """Modules of these kinds."""
        wanted = {kinds} if isinstance(kinds, str) else set(kinds)
        return sum(m.kind in wanted for m in self.modules)

    @property
    def parameters(self) -> int:
        """Parameters of all modules."""
        return sum(m.parameters for m in self.modules)

    @property
    def macs(self) -> int:
        """Multiply-accumulates of all modules."""
        return sum(m.macs for m in self.modules)


def _phases(order: ConvEntry, shape: tuple[int, int, int]) -> int:
    taps = [order.tap(shape, dy, dx) for dy in range(3) for dx in range(3)]
    return 1 + max(t % 4 for t in taps)


# -------------------------------------------------------------------- blocks of the UNet


def residual(net: Network, x: Activation, channels: int, embedding: Activation | None) -> Activation:
    """GroupNorm, SiLU, convolution twice, with the embedding between and a shortcut."""
    h = net.conv(net.pass_over("silu", net.norm(x, "group_norm")), channels)
    if embedding is not None:
        shift = net.linear(net.pass_over("silu", embedding), channels)
        h = net.pass_over("embedding_add", h, shift)
    h = net.conv(net.pass_over("silu", net.norm(h, "group_norm")), channels)
    return net.pass_over("residual_add", h, x if x.channels == channels else net.conv(x, channels, 1))


def transformer(net: Network, x: Activation, depth: int, context: Activation) -> Activation:
    """Spatial transformer: tokens, ``depth`` blocks, image, residual."""
    n = net.norm(x, "group_norm")
    t = net.linear(tokens(net, n), x.channels)
    for _ in range(depth):
        t = block(net, t, context)
    h = net.linear(t, x.channels)
    return net.pass_over("residual_add", image(net, h, x.side), x)


def tokens(net: Network, x: Activation) -> Activation:
    """Image to tokens."""
    y = net.value(f"{x.name}.rows", x.channels, rows=x.positions)
    net.plan.call("rows", (x.name,), (y.name,))
    return y


def image(net: Network, x: Activation, side: int) -> Activation:
    """Tokens to image."""
    y = net.value(f"{x.name}.image", x.channels, side)
    net.plan.call("image", (x.name,), (y.name,))
    return y


def block(net: Network, x: Activation, context: Activation) -> Activation:
    """Self attention, cross attention, gated feed forward; each behind a LayerNorm and a residual."""
    for source in (None, context):
        n = net.norm(x, "layer_norm")
        kv = source or n
        q, k, v = (net.linear(t, x.channels, bias=False) for t in (n, kv, kv))
        net.note(net.fresh("residual_add"), "residual_add", 0)
        x = net.linear(net.attention(q, k, v), x.channels, add=x)
    n = net.norm(x, "layer_norm")
    hidden = net.linear(n, 8 * x.channels)
    gated = net.pass_over("gelu", hidden, channels=4 * x.channels)
    net.note(net.fresh("residual_add"), "residual_add", 0)
    return net.linear(gated, x.channels, add=x)


def unet(net: Network) -> dict[str, int]:
    """The whole forward pass; multiply-accumulates of the transformer blocks by place."""
    sinusoids = net.value("sinusoids", STEPS_IN, rows=1, role="in")
    condition = net.value("condition", CONDITION, rows=1, role="in")
    context = net.value("context", CONTEXT, rows=TOKENS, role="in")
    latent = net.value("latent", 4, SIDES[0], role="in")
    parts = []
    for given in (sinusoids, condition):
        parts.append(net.linear(net.pass_over("silu", net.linear(given, EMBEDDING)), EMBEDDING))
    embedding = net.pass_over("embedding_sum", *parts)
    x = net.conv(latent, WIDTHS[0])
    skips: list[Activation] = [x]
    spent: dict[str, int] = {}

    def attended(place: str, x: Activation, depth: int) -> Activation:
        before = len(net.modules)
        y = transformer(net, x, depth, context)
        spent[place] = spent.get(place, 0) + sum(m.macs for m in net.modules[before:])
        return y

    for level, (width, depth) in enumerate(zip(WIDTHS, DEPTHS, strict=True)):
        for _ in range(2):
            x = residual(net, x, width, embedding)
            if depth:
                x = attended(f"level {level} in", x, depth)
            skips.append(x)
        if level < 2:
            x = net.conv(x, width, 3, 2)
            skips.append(x)
    x = residual(net, x, WIDTHS[2], embedding)
    x = attended("mid", x, DEPTHS[2])
    x = residual(net, x, WIDTHS[2], embedding)
    for level in (2, 1, 0):
        for _ in range(3):
            skip = skips.pop()
            net.note(net.fresh("concat"), "concat", 0)
            joined = net.value("concat", x.channels + skip.channels, x.side)
            net.plan.call("concat", (x.name, skip.name), (joined.name,))
            x = residual(net, joined, WIDTHS[level], embedding)
            if DEPTHS[level]:
                x = attended(f"level {level} out", x, DEPTHS[level])
        if level:
            larger = net.value("upsample", x.channels, 2 * x.side)
            net.plan.call("upsample", (x.name,), (larger.name,))
            x = net.conv(larger, x.channels)
    last = net.conv(net.pass_over("silu", net.norm(x, "group_norm")), 4)
    _result(net, last)
    return spent


def _result(net: Network, last: Activation) -> None:
    out = net.value("result", last.channels, last.side, role="out")
    net.plan.call("result", (last.name,), (out.name,))


def vae(net: Network) -> None:
    """The decoder: 128x128x4 to 1024x1024x3."""
    latent = net.value("vae latent", 4, SIDES[0], role="in")
    x = net.conv(net.conv(latent, 4, 1), 512)
    x = residual(net, x, 512, None)
    rows = tokens(net, net.norm(x, "group_norm"))
    q, k, v = (net.linear(rows, 512) for _ in range(3))
    h = net.linear(net.attention(q, k, v, 512), 512)
    x = net.pass_over("residual_add", image(net, h, x.side), x)
    x = residual(net, x, 512, None)
    for level, width in enumerate((512, 512, 256, 128)):
        for _ in range(3):
            x = residual(net, x, width, None)
        if level < 3:
            larger = net.value("vae upsample", x.channels, 2 * x.side)
            net.plan.call("upsample", (x.name,), (larger.name,))
            x = net.conv(larger, x.channels)
    _result(net, net.conv(net.pass_over("silu", net.norm(x, "group_norm")), 3))


def text_encoder(net: Network, width: int, layers: int, *, projected: bool) -> None:
    """A text encoder of one prompt; the table lookups stay on the host."""
    net.note(net.fresh("embedding"), "table", (49408 + TOKENS) * width)
    x = net.value("prompt", width, rows=TOKENS, role="in")
    for _ in range(layers):
        n = net.norm(x, "layer_norm")
        q, k, v = (net.linear(n, width) for _ in range(3))
        x = net.linear(net.attention(q, k, v), width, add=x)
        hidden = net.pass_over("gelu", net.linear(net.norm(x, "layer_norm"), 4 * width))
        x = net.linear(hidden, width, add=x)
    x = net.norm(x, "layer_norm")
    if projected:
        pooled = net.value("pooled", width, rows=1)
        net.plan.call("pool", (x.name,), (pooled.name,))
        x = net.linear(pooled, width, bias=False)
    out = net.value("hidden", x.channels, rows=x.rows, role="out")
    net.plan.call("result", (x.name,), (out.name,))
