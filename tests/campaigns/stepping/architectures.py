"""Steps of published architectures as torch modules, with random weights, and the roles of their inputs and outputs."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
from torch import nn

__all__ = ["ARCHITECTURES", "Architecture"]

Tensors = tuple[torch.Tensor, ...]


@dataclass(frozen=True)
class Architecture:
    """A step to export.

    Attributes:
        name: the name and the sizes of the architecture.
        module: a function that creates the step.
        inputs: example inputs of the step, by name.
        outputs: the names of the outputs.
        roles: the arguments of ``ortscan.loop``.
        steps: the number of steps to time, the length of scanned inputs.
        dynamic: for each input, the axes that change their sizes from step to step.
    """

    name: str
    module: Callable[[], nn.Module]
    inputs: Mapping[str, torch.Tensor]
    outputs: list[str]
    roles: dict[str, Any]
    steps: int = 64
    dynamic: Mapping[str, Mapping[int, str]] = field(default_factory=dict)


class LstmDecoder(nn.Module):
    """A character decoder that reads its own token: an LSTM and a projection."""

    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.embedding, self.cell, self.head = nn.Embedding(96, 64), nn.LSTMCell(64, hidden), nn.Linear(hidden, 96)

    def forward(self, token: torch.Tensor, h: torch.Tensor, c: torch.Tensor) -> Tensors:
        h1, c1 = self.cell(self.embedding(token), (h, c))
        following = self.head(h1).argmax(-1)
        return following, h1, c1


class Transducer(nn.Module):
    """One frame of an RNN-T: the joiner of the frame and the predictor, which moves only if the token is no blank."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.cell = nn.Embedding(29, 64), nn.LSTMCell(64, 160)
        self.frame, self.predicted, self.head = nn.Linear(160, 160), nn.Linear(160, 160), nn.Linear(160, 29)

    def forward(self, x: torch.Tensor, token: torch.Tensor, h: torch.Tensor, c: torch.Tensor) -> Tensors:
        h1, c1 = self.cell(self.embedding(token), (h, c))
        best = self.head(torch.tanh(self.frame(x) + self.predicted(h1))).argmax(-1)
        blank = best == 0
        moves = ~blank[:, None]
        return torch.where(blank, token, best), torch.where(moves, h1, h), torch.where(moves, c1, c), best


class Tacotron(nn.Module):
    """One frame of Tacotron's decoder: a prenet, an attention GRU over 40 encoder outputs, a decoder GRU, and a stop token."""

    def __init__(self) -> None:
        super().__init__()
        self.prenet = nn.Sequential(nn.Linear(80, 256), nn.ReLU(), nn.Linear(256, 128), nn.ReLU())
        self.attention, self.query, self.key, self.score = (
            nn.GRUCell(128 + 128, 128),
            nn.Linear(128, 128),
            nn.Linear(128, 128),
            nn.Linear(128, 1),
        )
        self.decoder, self.frame, self.stop = nn.GRUCell(256, 256), nn.Linear(256, 80), nn.Linear(256, 1)

    def forward(
        self, frame: torch.Tensor, context: torch.Tensor, a: torch.Tensor, d: torch.Tensor, memory: torch.Tensor
    ) -> Tensors:
        a1 = self.attention(torch.cat([self.prenet(frame), context], -1), a)
        weights = torch.softmax(self.score(torch.tanh(self.key(memory) + self.query(a1)[:, None]))[..., 0], -1)
        context1 = (weights[:, None] @ memory)[:, 0]
        d1 = self.decoder(torch.cat([a1, context1], -1), d)
        return self.frame(d1), context1, a1, d1, torch.sigmoid(self.stop(d1)) > 0.9


class Block(nn.Module):
    """A block of a decoder-only transformer of width 64 with four heads. Its cache gets one row, at ``position``.

    If ``rows`` is 0, the cache grows by the row. Otherwise it has this many rows, and later rows are masked.
    """

    def __init__(self, rows: int) -> None:
        super().__init__()
        self.rows = rows
        self.first, self.second = nn.LayerNorm(64), nn.LayerNorm(64)
        self.qkv, self.out = nn.Linear(64, 192), nn.Linear(64, 64)
        self.up, self.down = nn.Linear(64, 256), nn.Linear(256, 64)

    def forward(self, x: torch.Tensor, position: torch.Tensor, keys: torch.Tensor, values: torch.Tensor) -> Tensors:
        q, k, v = self.qkv(self.first(x)).reshape(1, 3, 4, 1, 16).unbind(1)
        if self.rows:
            rows = torch.arange(self.rows)
            here = (rows == position)[:, None]
            keys, values = torch.where(here, k, keys), torch.where(here, v, values)
            hidden = torch.where(rows <= position, 0.0, -1e9)
        else:
            keys, values = torch.cat([keys, k], 2), torch.cat([values, v], 2)
            hidden = torch.zeros(1)
        weights = torch.softmax(q @ keys.transpose(-1, -2) / 4 + hidden, -1)
        x = x + self.out((weights @ values).reshape(1, 64))
        return x + self.down(nn.functional.gelu(self.up(self.second(x)))), keys, values


class Transformer(nn.Module):
    """A step of a decoder-only transformer: two blocks and a vocabulary of 96."""

    def __init__(self, rows: int) -> None:
        super().__init__()
        self.embedding, self.positions, self.head = nn.Embedding(96, 64), nn.Embedding(512, 64), nn.Linear(64, 96)
        self.first, self.second = Block(rows), Block(rows)

    def forward(self, token: torch.Tensor, position: torch.Tensor, *caches: torch.Tensor) -> Tensors:
        x = self.embedding(token) + self.positions(position)
        x, k0, v0 = self.first(x, position, *caches[:2])
        x, k1, v1 = self.second(x, position, *caches[2:])
        return self.head(x).argmax(-1), k0, v0, k1, v1


class Mamba(nn.Module):
    """A step of a Mamba block: width 64, inner width 128, 16 states for each, and a convolution over four steps."""

    def __init__(self) -> None:
        super().__init__()
        self.enter, self.leave = nn.Linear(64, 256), nn.Linear(128, 64)
        self.kernel, self.bias = nn.Parameter(torch.randn(128, 4)), nn.Parameter(torch.randn(128))
        self.select, self.delta = nn.Linear(128, 4 + 32), nn.Linear(4, 128)
        self.a, self.d = nn.Parameter(-torch.rand(128, 16)), nn.Parameter(torch.randn(128))

    def forward(self, x: torch.Tensor, window: torch.Tensor, state: torch.Tensor) -> Tensors:
        u, gate = self.enter(x).split(128, -1)
        window1 = torch.cat([window[:, :, 1:], u[:, :, None]], -1)
        u = nn.functional.silu((window1 * self.kernel).sum(-1) + self.bias)
        delta, b, c = self.select(u).split([4, 16, 16], -1)
        delta = nn.functional.softplus(self.delta(delta))
        state1 = torch.exp(delta[..., None] * self.a) * state + (delta * u)[..., None] * b[:, None]
        y = (state1 * c[:, None]).sum(-1) + u * self.d
        return self.leave(y * nn.functional.silu(gate)), window1, state1


class VoiceActivity(nn.Module):
    """A frame of a voice-activity model: convolutions over 512 samples, an LSTM of 64, and a probability."""

    def __init__(self) -> None:
        super().__init__()
        self.encode = nn.Sequential(
            nn.Conv1d(1, 16, 64, 32), nn.ReLU(), nn.Conv1d(16, 32, 3, 2), nn.ReLU(), nn.Conv1d(32, 32, 3, 2), nn.ReLU()
        )
        self.cell, self.head = nn.LSTMCell(32, 64), nn.Linear(64, 1)

    def forward(self, x: torch.Tensor, h: torch.Tensor, c: torch.Tensor) -> Tensors:
        h1, c1 = self.cell(self.encode(x[:, None]).mean(-1), (h, c))
        return torch.sigmoid(self.head(h1)), h1, c1


class NoiseSuppression(nn.Module):
    """A frame of RNNoise: 42 features, three GRUs of 24, 48 and 96, the voice probability and 22 gains."""

    def __init__(self) -> None:
        super().__init__()
        self.enter, self.voice, self.gains = nn.Linear(42, 24), nn.Linear(24, 1), nn.Linear(96, 22)
        self.first, self.noise, self.denoise = nn.GRUCell(24, 24), nn.GRUCell(24 + 24 + 42, 48), nn.GRUCell(24 + 48 + 42, 96)

    def forward(self, x: torch.Tensor, a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> Tensors:
        e = torch.tanh(self.enter(x))
        a1 = self.first(e, a)
        b1 = self.noise(torch.cat([e, a1, x], -1), b)
        c1 = self.denoise(torch.cat([a1, b1, x], -1), c)
        return torch.sigmoid(self.gains(c1)), torch.sigmoid(self.voice(a1)), a1, b1, c1


def zeros(*sizes: int) -> torch.Tensor:
    return torch.zeros(*sizes)


_CACHES = ("k0", "v0", "k1", "v1")
_LSTM = {"states": {"token": "next", "h": "h1", "c": "c1"}, "initial": {"h": 0, "c": 0}, "max_steps": 64}
ARCHITECTURES = [
    *(
        Architecture(
            f"LSTM decoder, {hidden} hidden, 96 tokens",
            partial(LstmDecoder, hidden),
            {"token": torch.tensor([1]), "h": zeros(1, hidden), "c": zeros(1, hidden)},
            ["next", "h1", "c1"],
            {**_LSTM, "stack": ["next"], "outputs": ["next"]},
        )
        for hidden in (64, 128, 256)
    ),
    Architecture(
        "RNN-T predictor and joiner, 160 hidden, 29 tokens",
        Transducer,
        {"x": torch.randn(1, 160), "token": torch.tensor([0]), "h": zeros(1, 160), "c": zeros(1, 160)},
        ["token1", "h1", "c1", "best"],
        {
            "states": {"token": "token1", "h": "h1", "c": "c1"},
            "scan": ["x"],
            "initial": {"token": 0, "h": 0, "c": 0},
            "outputs": ["best"],
        },
    ),
    Architecture(
        "Tacotron decoder with attention and a stop token",
        Tacotron,
        {
            "frame": zeros(1, 80),
            "context": zeros(1, 128),
            "a": zeros(1, 128),
            "d": zeros(1, 256),
            "memory": torch.randn(1, 40, 128),
        },
        ["frame1", "context1", "a1", "d1", "stop"],
        {
            "states": {"frame": "frame1", "context": "context1", "a": "a1", "d": "d1"},
            "initial": {"frame": 0, "context": 0, "a": 0, "d": 0},
            "stop": "stop",
            "max_steps": 64,
            "stack": ["frame1"],
            "outputs": ["frame1"],
        },
    ),
    *(
        Architecture(
            f"Transformer, 2 layers, width 64, {kind}",
            partial(Transformer, rows),
            {
                "token": torch.tensor([1]),
                "position": torch.tensor([3]),
                **{name: torch.randn(1, 4, rows or 3, 16) for name in _CACHES},
            },
            ["next", *(f"{name}_" for name in _CACHES)],
            {
                "states": {"token": "next", **{name: f"{name}_" for name in _CACHES}},
                "initial": dict.fromkeys(_CACHES, 0),
                "counter": "position",
                "max_steps": 64,
                "stack": ["next"],
                "outputs": ["next"],
            },
            dynamic={} if rows else {name: {2: "past"} for name in _CACHES},
        )
        for rows, kind in ((64, "a cache of 64 rows"), (0, "a cache that grows"))
    ),
    Architecture(
        "Mamba block, width 64, 16 states",
        Mamba,
        {"x": torch.randn(1, 64), "window": zeros(1, 128, 4), "state": zeros(1, 128, 16)},
        ["y", "window1", "state1"],
        {"states": {"window": "window1", "state": "state1"}, "scan": ["x"], "initial": {"window": 0, "state": 0}},
    ),
    Architecture(
        "Voice activity, frames of 512 samples, LSTM of 64",
        VoiceActivity,
        {"x": torch.randn(1, 512), "h": zeros(1, 64), "c": zeros(1, 64)},
        ["voice", "h1", "c1"],
        {"states": {"h": "h1", "c": "c1"}, "scan": ["x"], "initial": {"h": 0, "c": 0}},
    ),
    Architecture(
        "RNNoise, three GRUs of 24, 48 and 96",
        NoiseSuppression,
        {"x": torch.randn(1, 42), "a": zeros(1, 24), "b": zeros(1, 48), "c": zeros(1, 96)},
        ["gains", "voice", "a1", "b1", "c1"],
        {"states": {"a": "a1", "b": "b1", "c": "c1"}, "scan": ["x"], "initial": {"a": 0, "b": 0, "c": 0}},
    ),
]
