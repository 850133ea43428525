"""Find matrix states that accumulate outer products, with their keys, values, decays and queries.

    S' = a S + k v^T    or, with a delta rule,    S' = a S + b k (v - (a S)^T k)^T;    y = q^T S'

The decay ``a`` is optional. A state may have more than two axes. The product with the query sums over the key axis. The value axes
occur only in S and v. All other axes are called the heads: their indices select one of several independent matrices.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import prod

import onnx_ir as ir

from rewrites.analysis.dependence import nodes_computing, reads, varying_values
from rewrites.base.not_applicable import NotApplicable
from rewrites.graph.values import through_identity
from rewrites.loops import ScanView, State
from rewrites.recurrences.outer_products.product_reader import ProductReader
from rewrites.recurrences.outer_products.terms import Axes, Factor, Labels, NotAProduct, Product, Tensor
from rewrites.recurrences.results import is_used

__all__ = ["MatrixState", "matrix_states"]


@dataclass(frozen=True)
class MatrixState:
    """A matrix state and the factors of its step, named as in the formula of the module docstring.

    Args:
        labels: The labels of the axes of ``state``.
        heads, values: The labels of the heads axes and of the value axes.
        key: The label of the key axis; None if its size is 1.
        decay, keys, value_factor: The factors of a, of k and of v.
        delta_factor: The factors of b; None without a delta rule.
        query, read: The factors of q; the result y and the labels of its axes. Both None if only the last matrix is read.
    """

    state: State
    axes: Axes
    labels: Labels
    heads: tuple[int, ...]
    key: int | None
    values: tuple[int, ...]
    decay: Product
    keys: Product
    value_factor: Product
    delta_factor: Product | None
    query: Product | None
    read: tuple[ir.Value, Labels] | None

    @property
    def key_axes(self) -> tuple[int, ...]:
        """A tuple with the label of the key axis; empty if the size of this axis is 1."""
        return () if self.key is None else (self.key,)

    @property
    def factors(self) -> list[ir.Value]:
        """The values of the factors of a, k, v, b and q."""
        products = (self.decay, self.keys, self.value_factor, self.delta_factor, self.query)
        return [factor.value for product in products if product is not None for factor in product.factors]

    @property
    def has_last(self) -> bool:
        """Return True if something reads the matrix after the last step."""
        return is_used(self.state.final)

    def size(self, labels: Iterable[int]) -> int:
        """Return the product of the sizes of ``labels``, or -1 if one is unknown."""
        sizes = [self.axes.size(label) for label in labels]
        known = [size for size in sizes if isinstance(size, int)]
        return prod(known) if len(known) == len(sizes) else -1

    def unknown_sizes(self) -> NotApplicable | None:
        """Return a reason if sizes are unknown. One size of the heads may be unknown."""
        others = (*self.key_axes, *self.values)
        unknown = [label for label in (*self.heads, *others) if self.size([label]) < 0]
        if len(unknown) <= 1 and not any(label in others for label in unknown):
            return None
        name = self.state.inner.name
        return NotApplicable("ATTENTION-SHAPE", f"a size of the matrices in '{name}', or two sizes of its heads, are not known")


def matrix_states(loop: ScanView, opset: int) -> Iterator[MatrixState]:
    """Find the matrix states of ``loop`` that accumulate outer products."""
    varying: set[ir.Value] | None = None
    for state in loop.states:
        next_value, rank = through_identity(state.next), state.inner.shape
        if rank is None or len(rank) < 2 or next_value is None or next_value is state.inner:
            continue
        varying = varying or varying_values(loop.body, [each.inner for each in loop.states])
        for splits_products in (False, True):
            try:
                yield _read(loop, state, next_value, varying, ProductReader(loop, varying, opset, splits_products))
                break
            except NotAProduct:
                continue


def _read(loop: ScanView, state: State, next_value: ir.Value, varying: set[ir.Value], reader: ProductReader) -> MatrixState:
    """Return ``state`` as a MatrixState. Raise NotAProduct if its steps add no outer products."""
    reader.known[state.inner] = reader.axes.factor(state.inner)
    for node in nodes_computing(loop.body, [next_value], [state.inner]):
        if any(value in varying for value in reads(node)):
            reader.known[node.outputs[0]] = reader.read(node)
    tensor, inside = reader.known.get(next_value), set(reader.known) - {next_value}
    reader.known = {next_value: reader.axes.factor(next_value)}
    reading = _reading(loop, state, next_value, reader, inside)
    if tensor is None:
        raise NotAProduct
    tensor = reader.axes.settled(tensor)
    kept, added_terms, removed = list[Product](), list[Product](), list[tuple[Product, Factor]]()
    for product in tensor.products:
        own = [factor for factor in product.factors if factor.value is state.inner]
        others = Product(product.number, tuple(factor for factor in product.factors if factor.value is not state.inner))
        if len(own) > 1:
            raise NotAProduct
        if not own:
            added_terms.append(others)
        elif own[0].labels == tensor.labels:
            kept.append(others)
        else:
            removed.append((others, own[0]))
    if len(kept) != 1 or len(added_terms) != 1 or len(removed) > 1 or kept[0].number != 1:
        raise NotAProduct
    return _with_roles(state, next_value, reader.axes, tensor.labels, kept[0], added_terms[0], removed, reading)


def _reading(
    loop: ScanView, state: State, next_value: ir.Value, reader: ProductReader, inside: set[ir.Value]
) -> tuple[ir.Value, Tensor] | None:
    """Return the product of the next value with a query, as a pair (value, Tensor), or None.

    Raise NotAProduct if other nodes read the state.
    """
    matches = list[tuple[ir.Value, Tensor]]()
    update = set(nodes_computing(loop.body, [next_value]))
    for node in loop.body:
        values = [through_identity(value) for value in reads(node)]
        if node in update or node.op_type == "Identity":
            continue
        if any(value in inside for value in values):
            raise NotAProduct
        if any(value in reader.known for value in values):
            tensor = reader.read(node)
            if _is_summed(tensor, next_value):
                matches.append((node.outputs[0], tensor))
            else:
                reader.known[node.outputs[0]] = tensor
    held = {*inside, *reader.known}
    returned = [output.inner for output in loop.scan_outputs] + [each.next for each in loop.states if each is not state]
    if len(matches) > 1 or any(through_identity(value) in held for value in returned):
        raise NotAProduct
    return matches[0] if matches else None


def _with_roles(
    state: State,
    next_value: ir.Value,
    axes: Axes,
    labels: Labels,
    decay: Product,
    added_term: Product,
    removed: Sequence[tuple[Product, Factor]],
    reading: tuple[ir.Value, Tensor] | None,
) -> MatrixState:
    named = [label for label in labels if label is not None]
    query, read, key, by = None, None, None, None
    if reading is not None:
        query, key, read_labels = _query(next_value, reading[1], labels)
        read = (reading[0], read_labels)
    if removed:
        pairs = [(mine, other) for mine, other in zip(labels, removed[0][1].labels, strict=True) if mine != other]
        if len(pairs) != 1 or None in pairs[0] or (query is not None and pairs[0][0] != key):
            raise NotAProduct
        key = pairs[0][0]
    elif query is None:
        key = _independent_axis(named, decay, added_term)
    keys = Product(1.0, tuple(factor for factor in added_term.factors if key is not None and key in factor.named))
    rest = Product(added_term.number, tuple(factor for factor in added_term.factors if factor not in keys.factors))
    if removed:
        by, rest = _delta(decay, keys, rest, removed[0][0], key, pairs[0][1])
    shared = {*decay.named, *keys.named, *(query.named if query else ()), *(by.named if by else ())}
    values = tuple(label for label in named if label != key and label not in shared)
    heads = tuple(label for label in named if label != key and label not in values)
    if not rest.named <= {*heads, *values} or not decay.named <= {*heads, key} or not keys.named <= {*heads, key}:
        raise NotAProduct
    return MatrixState(state, axes, labels, heads, key, values, decay, keys, rest, by, query, read)


def _query(next_value: ir.Value, tensor: Tensor, labels: Labels) -> tuple[Product, int | None, Labels]:
    """Return the query, the label of the axis over which ``tensor`` sums, and the labels of ``tensor``."""
    (product,) = tensor.products
    (own,) = (factor for factor in product.factors if factor.value is next_value)
    to = {mine: label for mine, label in zip(own.labels, labels, strict=True) if mine is not None and label is not None}
    if [label is None for label in own.labels] != [label is None for label in labels]:
        raise NotAProduct
    summed_labels = [to[label] for label in own.named if label not in tensor.labels]
    others = tuple(factor for factor in product.factors if factor is not own)
    if len(summed_labels) != 1 or any(label not in to for factor in others for label in factor.named):
        raise NotAProduct
    query = Product(product.number, tuple(_relabelled(factor, to) for factor in others))
    return query, summed_labels[0], tuple(None if label is None else to.get(label) for label in tensor.labels)


def _independent_axis(named: Sequence[int], decay: Product, added_term: Product) -> int:
    """Return an axis for the key if there is no query: one that shares no factor with some other axis."""
    for label in named:
        along = {other for factor in added_term.factors if label in factor.named for other in factor.named}
        if label in along and any(other not in along | decay.named for other in named):
            return label
    raise NotAProduct


def _is_summed(tensor: Tensor, next_value: ir.Value) -> bool:
    """Return True if ``tensor`` is one product that sums over an axis of its factor ``next_value``."""
    if len(tensor.products) != 1:
        return False
    owns = [factor for factor in tensor.products[0].factors if factor.value is next_value]
    return len(owns) == 1 and not owns[0].named <= set(tensor.labels)


def _relabelled(factor: Factor, to: dict[int, int]) -> Factor:
    return Factor(factor.value, tuple(None if label is None else to[label] for label in factor.labels))


def _delta(
    decay: Product, keys: Product, rest: Product, removed: Product, key: int | None, summed: int | None
) -> tuple[Product, Product]:
    """Return b and v of the delta rule in the module's docstring, or raise NotAProduct if there is none."""
    if key is None or summed is None:
        raise NotAProduct
    to = {label: label for factor in removed.factors for label in factor.named} | {summed: key}
    matches = [_relabelled(factor, to) for factor in removed.factors]
    found_by = [each for each, factor in zip(matches, removed.factors, strict=True) if summed in factor.named]
    along_key = [factor for factor in decay.factors if key in factor.named]
    if _without(_without(found_by, along_key), keys.factors) or removed.number != -1 or rest.number != 1:
        raise NotAProduct
    others = [factor for factor in removed.factors if summed not in factor.named]
    delta_factors = _without(_without(others, [factor for factor in decay.factors if factor not in along_key]), keys.factors)
    return Product(1.0, tuple(delta_factors)), Product(1.0, tuple(_without(rest.factors, delta_factors)))


def _without(factors: Sequence[Factor], removed_factors: Sequence[Factor]) -> list[Factor]:
    left = list(factors)
    for factor in removed_factors:
        if factor not in left:
            raise NotAProduct
        left.remove(factor)
    return left
