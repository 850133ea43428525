"""The Report that ``explain`` returns.

It describes the fate of every loop as text, as data and as an HTML page.
"""

import os
from collections.abc import Mapping
from dataclasses import fields, replace
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

import onnx_ir as ir

from ortscan.drawing.drawings import drawings_of
from ortscan.drawing.picture import Drawings
from ortscan.modelio import AnyModel
from ortscan.option_words import in_keywords, keywords_text
from ortscan.page.document import document, fragment, header
from ortscan.report import html
from ortscan.report.answer import Answer, opening
from ortscan.report.words import loop_line, node_sentences
from rewrites.base.plain_text import plain
from rewrites.base.report import RewriteReport as Outcome

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["Report", "in_python", "with_drawings"]


class Report(Outcome):
    """The fate of every loop of a model, with reasons.

    Attributes:
        drawings: the drawings of each loop, by its location in the model.
        title: the title of the HTML page.
    """

    drawings: Mapping[str, Drawings] = MappingProxyType({})
    title: str = "A model"

    @classmethod
    def of(
        cls,
        outcome: Outcome,
        drawings: Mapping[str, Drawings] | None = None,
        model: object = None,
        answer: Answer | None = None,
    ) -> "Self":
        """Return ``outcome`` as a Report with drawings and an answer. By default the answer only counts loops.

        If ``model`` is a path, its file name becomes the title of the page.
        """
        report = cls(**{field.name: getattr(outcome, field.name) for field in fields(outcome)})
        if answer is not None:
            report.answer = answer
        report.drawings = drawings or {}
        report.title = Path(model).name if isinstance(model, str | os.PathLike) else cls.title
        return report

    @cached_property
    def answer(self) -> Answer:
        """The answer that the report starts with."""
        return Answer.of(self)

    def summary(self) -> str:
        """Return a text with the answer in one line, followed by one line on each loop.

        The line on a remaining loop ends with the main reason code, which says why the loop remains.
        """
        lines = [str(self.answer), *node_sentences(self)]
        for loop in self.loops:
            code = f" ({loop.reasons[0].code})" if loop.reasons else ""
            lines.append(f"{plain(loop.where)}: {loop_line(loop)}{code}")
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.summary()

    def to_html(self) -> str:
        """Return the report as a self-contained HTML page."""
        return document(self.title, self._content())

    def _repr_html_(self) -> str:
        return fragment(self._content())

    def _content(self) -> str:
        head = header("ortscan", self.title, opening(self.answer, self), html.cards_of(self, self.answer))
        return in_keywords(head + html.report_sections(self, self.drawings))


def with_drawings(outcome: Outcome, original: AnyModel, result: ir.Model, model: object, answer: Answer | None = None) -> Report:
    """Return ``outcome`` as a Report with drawings of the loops of ``original`` and ``result``.

    ``model`` is the model as the caller passed it. If it is a path, its file name becomes the title of the page.
    """
    steps = {loop.where: loop.steps for loop in outcome.loops}
    return Report.of(outcome, drawings_of(steps, original, result), model, answer)


def in_python(report: Report) -> Report:
    """Return ``report``, after its texts are changed to name options as keywords instead of flags."""
    for loop in report.loops:
        loop.reasons = [replace(reason, detail=in_keywords(reason.detail)) for reason in loop.reasons]
        loop.advice = [
            replace(advice, text=keywords_text(advice.options) + advice.text.removeprefix(advice.flags)) for advice in loop.advice
        ]
    if report.weights is not None:
        report.weights = replace(report.weights, left_out=in_keywords(report.weights.left_out))
    return report
