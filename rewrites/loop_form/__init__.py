"""Brings loops into a plain form. A Loop becomes a Scan, or reports why it cannot."""

__all__: list[str] = []
