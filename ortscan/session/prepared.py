"""What a session opens in the place of the model it was given."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from ortscan.cache.renewal import Renewal
from ortscan.cache.store import Store
from ortscan.session.applied import Applied
from ortscan.session.source import Source
from ortscan.session.verdict import Verdict
from rewrites.python_ops.wire import DOMAIN

__all__ = ["Prepared", "as_it_is", "beside_data"]


@dataclass
class Prepared:
    """The model to open: ``path`` or ``content``, None for the one that was given.

    ``data_of``: what knows where its external data is, None where it has none; ``locations``: the names of that.
    ``python_ops``: whether it holds Python custom ops.
    ``verdict``: says whether what was taken from the cache is what it seems; it may be another model's if it ``is_guess``.
    ``renewal``: of the notes of the data, where it gets second names for a while. ``holder``: keeps temporary files alive.
    """

    applied: Applied
    path: str | None = None
    content: bytes | None = None
    data_of: Source | None = None
    python_ops: bool = False
    verdict: Verdict | None = field(default=None, repr=False)
    is_guess: bool = False
    locations: Sequence[str] = ()
    renewal: Renewal | None = field(default=None, repr=False)
    holder: Any = field(default=None, repr=False)

    @property
    def is_original(self) -> bool:
        """Whether this is the model that was given."""
        return self.path is None and self.content is None


def as_it_is(source: Source, how: Literal["original", "unchanged"], why: str | None = None) -> Prepared:
    """Return the model that was given, and ``why`` it is that one."""
    return Prepared(Applied(how, why), python_ops=source.outline.names(DOMAIN.encode()))


def beside_data(prepared: Prepared, source: Source, store: Store | None, places: Sequence[str]) -> Prepared:
    """Note that what was prepared refers to external data of ``source`` at ``places``."""
    prepared.data_of, prepared.locations = source, places
    if store is not None:
        prepared.renewal = Renewal(source.data_files(places), store.notes)
    return prepared
