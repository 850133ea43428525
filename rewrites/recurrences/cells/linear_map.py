"""Represent body values as linear maps of the sources of a step.

    value[..., j] = sum over sources s and their features i of s[..., i] * terms[s][i, j]  +  bias[j]

A source is anything that varies from step to step: a scan input, a state, or a product of activations that is multiplied by a
matrix. A MatMul, Gemm or Add with a constant, or a movement of features, turns a linear map into another linear map.
"""

import hashlib
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from rewrites.base.lazy import lazy

__all__ = ["LinearMap", "digest", "joined"]


@dataclass(frozen=True, eq=False)
class LinearMap:
    """A linear map of sources. All arrays are float64.

    ``terms``: for each source, its matrix of shape [features of the source, width]. ``bias``: an array of shape [width].
    """

    bias: np.ndarray
    terms: Mapping[Hashable, np.ndarray] = field(default_factory=dict)

    @classmethod
    def source(cls, key: Hashable, width: int) -> "LinearMap":
        """Return the identity map of the source ``key``."""
        return cls(np.zeros(width), {key: np.eye(width)})

    @property
    def width(self) -> int:
        """The number of features."""
        return len(self.bias)

    @property
    def is_constant(self) -> bool:
        """True if the map has no sources, so that it is loop-invariant."""
        return not self.terms

    @property
    def is_zero(self) -> bool:
        """True if all features are 0."""
        return not self.terms and not self.bias.any()

    @lazy
    def key(self) -> Hashable:
        """A key that is equal for equal maps. -0 and +0 count as equal."""
        parts = [part for source in sorted(self.terms, key=repr) for part in (repr(source), (self.terms[source] + 0.0).tobytes())]
        return digest("affine", self.width, (self.bias + 0.0).tobytes(), *parts)

    def plus(self, other: "LinearMap") -> "LinearMap":
        """Return the sum of both maps."""
        terms = dict(self.terms)
        for source, matrix in other.terms.items():
            total = terms[source] + matrix if source in terms else matrix
            if total.any():
                terms[source] = total
            else:
                terms.pop(source, None)
        return LinearMap(self.bias + other.bias, terms)

    def scaled(self, factor: np.ndarray) -> "LinearMap":
        """Multiply each feature by its element of ``factor``, an array of shape [width]."""
        terms = {source: matrix * factor for source, matrix in self.terms.items()}
        return LinearMap(self.bias * factor, {source: matrix for source, matrix in terms.items() if matrix.any()})

    def gather(self, index: np.ndarray) -> "LinearMap":
        """Return the features at ``index``."""
        terms = {source: np.ascontiguousarray(matrix[:, index]) for source, matrix in self.terms.items()}
        return LinearMap(self.bias[index], {source: matrix for source, matrix in terms.items() if matrix.any()})

    def times(self, matrix: np.ndarray) -> "LinearMap":
        """Multiply the features by ``matrix``, of shape [width, new width]."""
        terms = {source: _product(own, matrix) for source, own in self.terms.items()}
        return LinearMap(self.bias @ matrix, {source: own for source, own in terms.items() if own.any()})


def _product(own: np.ndarray, matrix: np.ndarray) -> np.ndarray:
    """Return ``own @ matrix``.

    If each row of ``own`` has at most one nonzero element, a faster computation skips the zeros. Most matrices are like this,
    because they only select and scale features.
    """
    if np.count_nonzero(own) > len(own):
        return np.asarray(own @ matrix)
    rows, columns = np.nonzero(own)
    if len(np.unique(rows)) < len(rows):
        return np.asarray(own @ matrix)
    result = np.zeros((len(own), matrix.shape[1]))
    result[rows] = own[rows, columns, None] * matrix[columns]
    return result


def digest(*parts: object) -> str:
    """Return a hash of ``parts``, to be used as a key.

    Keys are computed from other keys. A hash has a fixed length, so keys do not become longer and longer.
    """
    hashed = hashlib.blake2b(digest_size=16)
    for part in parts:
        content = part if isinstance(part, bytes) else str(part).encode()
        hashed.update(len(content).to_bytes(8, "little"))
        hashed.update(content)
    return hashed.hexdigest()


def joined(parts: Sequence[LinearMap]) -> LinearMap:
    """Return the map whose features are the concatenated features of ``parts``."""
    sources = {source: len(matrix) for part in parts for source, matrix in part.terms.items()}
    terms = {}
    for source, rows in sources.items():
        terms[source] = np.concatenate([part.terms.get(source, np.zeros((rows, part.width))) for part in parts], axis=1)
    return LinearMap(np.concatenate([part.bias for part in parts]), terms)
