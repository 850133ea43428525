"""Adapters for tools that load ortscan themselves. Each module imports its tool, so import it only where the tool is installed."""

__all__: list[str] = []
