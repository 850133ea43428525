"""Random Scans whose body is any graph of states, inputs and nodes."""

import random

import onnx_ir as ir

from rewrites.graph.context import Context
from rewrites.loops import ScanView, view
from tests.rewrites.apply import one_loop, prepared

__all__ = ["random_scan"]


def random_scan(seed: int, nodes: int = 8) -> tuple[ScanView, Context]:
    """A Scan of up to five states over two inputs, of sizes that differ, with an If among its nodes now and then."""
    rng = random.Random(seed)
    states = [f"s{i}" for i in range(rng.randint(0, 5))]
    known, inside = [*states, "x", "y", "w"], []
    for i in range(rng.randint(1, nodes)):
        one, other = rng.choice(known), rng.choice(known)
        kind = rng.choice(["Add", "Add", "Mul", "Tanh", "Identity", "Split", "If"])
        if kind == "Split":
            inside.append(f"n{i}, m{i} = Split <axis = 0, num_outputs = 2> ({one}) p{i} = Concat <axis = 0> (m{i}, n{i})")
            known += [f"p{i}"]
        elif kind == "If":
            branch = f"g{i} () => (float[2] r{i}) {{ r{i} = Neg ({one}) }}"
            other_branch = f"k{i} () => (float[2] q{i}) {{ q{i} = Abs ({other}) }}"
            inside.append(f"n{i} = If <then_branch = {branch}, else_branch = {other_branch}> (flag)")
        else:
            inside.append(f"n{i} = {kind} ({one}{'' if kind in ('Tanh', 'Identity') else f', {other}'})")
        known.append(f"n{i}" if kind != "Split" else f"p{i}")
    made = [name for name in known if name[0] in "np"]
    after = [rng.choice([*made, *states]) for _ in states]
    results = [rng.choice(made) for _ in range(rng.randint(1, 2))]
    inside += [f"a{i} = Identity ({name})" for i, name in enumerate(after)] + [
        f"o{i} = Identity ({name})" for i, name in enumerate(results)
    ]
    body = f"b ({', '.join(f'float[2] {name}' for name in [*states, 'x', 'y'])}) => ("
    body += ", ".join([*(f"float[2] a{i}" for i in range(len(after))), *(f"float[2] o{i}" for i in range(len(results)))])
    given = [*(f"float[2] {name}0" for name in states), "float[T,2] xs", "float[T,2] ys", "float[2] w", "bool flag"]
    outer = [*(f"l{i}" for i in range(len(after))), *(f"z{i}" for i in range(len(results)))]
    types = [*(f"float[2] l{i}" for i in range(len(after))), *(f"float[T,2] z{i}" for i in range(len(results)))]
    operands = ", ".join([*(f"{name}0" for name in states), "xs", "ys"])
    ctx = prepared(
        f"""g ({", ".join(given)}) => ({", ".join(types)}) {{
        {", ".join(outer)} = Scan <num_scan_inputs = 2, body = {body}) {{ {" ".join(inside)} }}> ({operands}) }}"""
    )
    loop = view(one_loop(ctx), ctx.opset)
    assert isinstance(loop, ScanView)
    return loop, ctx


def reads_of(node: ir.Node) -> set[ir.Value]:
    """What `node` reads, graphs nested in it included, by their text: values of the body that any node in them names."""
    found = {value for value in node.inputs if value is not None}
    for attribute in node.attributes.values():
        if attribute.type == ir.AttributeType.GRAPH:
            for inner in attribute.as_graph():
                found |= {value for value in reads_of(inner) if value.graph is not inner.graph}
    return found
