"""Builds the model of a whole loop from the model of a step.

    step(h, x) => (h1, y)    ->    Scan(h, x of all steps; body = step) => (last h1, y of all steps)

    step(token, cache) => (token1, cache1, done)    ->    Loop(max_steps, token, cache; body = step, until done) => ...

A Scan needs scanned inputs, states whose sizes are known to stay the same, and no other limit of the steps than these inputs. Other
loops become a Loop. The nodes of the step become the body. Its initializers and constant inputs stay in the main graph, and the
body captures them. The names of the step's inputs and outputs become names of the whole model, so values of the body get new names.
"""

import onnx_ir as ir

from rewrites.base.errors import OptionError
from rewrites.base.plain_text import quoted
from rewrites.graph.builder import Builder, ConstantPool
from rewrites.graph.dims import forgotten, with_axes, without_names
from rewrites.graph.names import Names
from rewrites.graph.replace import replace_value
from rewrites.graph.values import rank_of, shape_dims, static_dims
from rewrites.graph.walk import inner_values
from rewrites.loops import ScanInput, ScanOutput, State, make_loop, make_scan
from rewrites.loops.own_results import append_copy
from rewrites.ops.versions.emit import count_up, move_axis_first, move_first_axis, reshape, shape_of
from rewrites.stepping.initial_states import grown_axes, initial_value
from rewrites.stepping.loop_control import next_condition, step_limit
from rewrites.stepping.step_roles import StepRoles

__all__ = ["build_whole"]

_STEPS = "steps"


def build_whole(model: ir.Model, roles: StepRoles) -> None:
    """Replace the step ``model`` by the model of the whole loop, in place.

    ``roles``: the roles of its inputs and outputs.
    """
    _Construction(model, roles).build()


class _Construction:
    """The step, and the parts of the loop that are built so far.

    Attributes:
        inner: the inputs of the step by name, which become inputs of the body.
        results: the outputs of the step by name, which the body computes.
        outer: the inputs of the whole model by name.
        before: the nodes before the loop.
        shapes: the declared shapes of the step's inputs and outputs by name.
        sizes: the names of dimensions of the step's inputs that keep their sizes in all steps.
        first: the nodes at the start of the body.
        after: the nodes after the loop.
        steps: the name of the dimension with the size of the scanned inputs.
    """

    def __init__(self, model: ir.Model, roles: StepRoles) -> None:
        self.graph, self.roles = model.graph, roles
        self.names = Names(model)
        self.before = Builder(self.names, ConstantPool(self.graph, self.names), model.opset_imports, model.ir_version)
        self.first, self.after = self.before.another(), self.before.another()
        self.inner = {value.name or "": value for value in self.graph.inputs}
        self.results = {value.name or "": value for value in self.graph.outputs}
        self.sizes = {dim for value in self.graph.inputs if value.shape is not None for dim in shape_dims(value.shape)}
        self.steps = next(
            name for name in (f"{_STEPS}{'_' * count}" for count in range(len(self.sizes) + 1)) if name not in self.sizes
        )
        self.shapes = {name: value.shape for name, value in (*self.inner.items(), *self.results.items())}
        for name, source in roles.states.items():
            self.sizes -= self._names_of_grown_sizes(self.inner[name], self.results[source])
            if source in roles.stack and grown_axes(self.inner[name], self.results[source]):
                raise OptionError(f"The size of {quoted(source)} changes from step to step, so it cannot be stacked.")
        self.is_scan = bool(roles.scan) and roles.stop is None and roles.limit is None and all(map(self._keeps_sizes, roles.states))
        self.body = self._take_nodes()
        self.outer = self._make_inputs()

    @staticmethod
    def _names_of_grown_sizes(before: ir.Value, after: ir.Value) -> set[int | str | None]:
        axes = grown_axes(before, after)
        return {shape_dims(value.shape)[axis] for value in (before, after) if value.shape is not None for axis in axes}

    def _keeps_sizes(self, state: str) -> bool:
        """Return True if ``state`` is known to have the same sizes in all steps, which a Scan requires."""
        before, after = self.inner[state], self.results[self.roles.states[state]]
        return isinstance(before.type, ir.TensorType) and None not in (before.shape, after.shape) and not grown_axes(before, after)

    def _take_nodes(self) -> ir.Graph:
        """Move the nodes of the step to a new body.

        Dimensions lose their names, which may mean other sizes outside.
        """
        nodes = list(self.graph)
        self.graph.outputs.clear()
        self.graph.inputs.clear()
        self.graph.remove(nodes)
        body = ir.Graph([], [], nodes=nodes, name=self.names.fresh(f"{self.graph.name or 'step'}_body"))
        for value in inner_values(body):
            value.shape = without_names(value.shape)
        return body

    def _make_inputs(self) -> dict[str, ir.Value]:
        """Return the inputs of the whole model by name.

        Values of the body with these names get new names.
        """
        outer = {}
        for name, value in self.inner.items():
            if name not in self.roles.states and name not in self.roles.scan and name != self.roles.counter:
                outer[name] = value
                continue
            default = self.graph.initializers.pop(name, None)
            own = ir.Value(
                name=name,
                type=value.type,
                shape=value.shape,
                doc_string=value.doc_string,
                metadata_props=dict(value.metadata_props),
            )
            value.name = self.names.fresh(f"{name}_step")
            value.shape = without_names(value.shape)
            if name in self.roles.scan:
                own.shape = with_axes(own.shape, self.roles.scan[name], self.steps)
                outer[name] = own
            elif name in self.roles.states and name not in self.roles.initial:
                outer[name] = own
                if default is not None:
                    own.const_value = default.const_value
                    self.graph.register_initializer(own)
            value.const_value = None
        if isinstance(self.roles.limit, str):
            self._rename(self.roles.limit)
            outer[self.roles.limit] = ir.Value(name=self.roles.limit, type=ir.TensorType(ir.DataType.INT64), shape=ir.Shape([]))
        for name, value in self.results.items():
            is_weight = self.graph.initializers.pop(name, None) is value
            value.name = self.names.fresh(f"{name}_step")
            if is_weight:
                self.graph.register_initializer(value)
        return outer

    def _rename(self, name: str) -> None:
        """Give another name to the values of the step that are called ``name``, the name of a new input."""
        weight = self.graph.initializers.pop(name, None)
        for value in [*inner_values(self.body), *self.body.inputs, *([weight] if weight is not None else [])]:
            if value.name == name:
                value.name = self.names.fresh(name)
        if weight is not None:
            self.graph.register_initializer(weight)

    def build(self) -> None:
        """Build the loop around the body, and set the inputs and outputs of the main graph."""
        self.graph.inputs[:] = list(self.outer.values())
        limit = None if self.is_scan else step_limit(self.before, self.roles, self.outer)
        step = ir.Value(name=self.names.fresh("step"), type=ir.TensorType(ir.DataType.INT64), shape=ir.Shape([]))
        self._set_counter(step)
        scanned = [self._scanned(name, axis) for name, axis in self.roles.scan.items()]
        if limit is not None:
            for scan in scanned:
                self._replace(scan.inner, self.first.op("Gather", scan.outer, step, axis=scan.axis, hint=scan.inner.name))
        elif self.roles.counter is not None:
            length = shape_of(self.before, scanned[0].outer, scanned[0].axis)
            scanned.append(ScanInput(count_up(self.before, length), step))
        self.first.prepend_to(self.body)
        returned: set[ir.Value] = set()
        states = [self._state(name, returned) for name in self.roles.states]
        stacked = [
            ScanOutput(self._own_result(self.results[name], returned), None, axis if limit is None else 0)
            for name, axis in self.roles.stack.items()
        ]
        if limit is None:
            node = make_scan(self.names, self.body, states, scanned, stacked, "loop")
        else:
            condition = ir.Value(name=self.names.fresh("goes_on"), type=ir.TensorType(ir.DataType.BOOL), shape=ir.Shape([]))
            last = self.before.another()
            goes_on = next_condition(last, condition, None if self.roles.stop is None else self.results[self.roles.stop])
            last.append_to(self.body)
            node = make_loop(self.names, self.body, limit, states, stacked, (step, condition, goes_on), "loop")
        self.before.append_to(self.graph)
        self.graph.append(node)
        self._set_outputs(node)

    def _scanned(self, name: str, axis: int) -> ScanInput:
        """Return how the loop reads the rows of an input.

        A Scan reads them along axis 0, because onnxruntime crashes if it scans no rows along another axis.
        """
        outer, rank = self.outer[name], rank_of(self.inner[name])
        if axis and self.is_scan and rank is not None:
            return ScanInput(move_axis_first(self.before, outer, axis, rank + 1), self.inner[name], 0)
        return ScanInput(outer, self.inner[name], axis)

    def _replace(self, old: ir.Value, new: ir.Value) -> None:
        """Replace an input of the step by a value of the body."""
        replace_value(old, new, self.names)
        self.results = {name: new if value is old else value for name, value in self.results.items()}

    def _set_counter(self, step: ir.Value) -> None:
        if self.roles.counter is None:
            return
        inner = self.inner[self.roles.counter]
        number = step if inner.dtype == ir.DataType.INT64 else self.first.op("Cast", step, to=int(ir.DataType.INT32))
        self._replace(inner, reshape(self.first, number, [1] * len(static_dims(inner) or ())) if rank_of(inner) else number)

    def _state(self, name: str, returned: set[ir.Value]) -> State:
        start = self.roles.initial.get(name)
        initial = self.outer[name] if start is None else initial_value(start, self.outer, self.before)
        return State(initial, self.inner[name], self._own_result(self.results[self.roles.states[name]], returned), None)

    def _own_result(self, value: ir.Value, returned: set[ir.Value]) -> ir.Value:
        """Return ``value``, or a copy of it if the body returns it already or does not compute it."""
        producer = value.producer()
        if value in returned or producer is None or producer.graph is not self.body:
            value = append_copy(self.body, value, self.names)
        returned.add(value)
        return value

    def _set_outputs(self, node: ir.Node) -> None:
        finals = dict(zip(self.roles.states, node.outputs, strict=False))
        stacks = dict(zip(self.roles.stack, node.outputs[len(finals) :], strict=True))
        for name in self.roles.outputs:
            if name not in stacks:
                state = next(state for state, source in self.roles.states.items() if source == name)
                value, shape = finals[state], self._known_sizes(self.shapes[state])
            else:
                value, axis = stacks[name], self.roles.stack[name]
                shape = with_axes(self._known_sizes(self.shapes[name]), axis, self._steps_in_all())
                if axis and not self.is_scan and shape is not None:
                    value = move_first_axis(self.after, value, axis, len(shape))
            value.name, value.shape = name, shape
            self.graph.outputs.append(value)
        self.after.append_to(self.graph)

    def _known_sizes(self, shape: ir.Shape | None) -> ir.Shape | None:
        """Return ``shape`` without sizes that change between steps, and without unknown names.

        Unknown names are those that no input of the step has.
        """
        return forgotten(shape, lambda dim: not isinstance(dim, int) and dim.value not in self.sizes)

    def _steps_in_all(self) -> int | str | None:
        """Return the number of all steps as a size, or None if it becomes known only when the model runs."""
        if self.roles.stop is not None or (self.roles.scan and self.roles.limit is not None):
            return None
        return self.steps if self.roles.scan else self.roles.limit if isinstance(self.roles.limit, int) else None
