"""Run the tools that load ortscan, each by its own command."""

__all__: list[str] = []
