"""Constants folded, equal values merged, copies read through, branches decided: in a body, or wherever an edit leaves such."""

__all__: list[str] = []
