"""Adapters for tools that load ortscan themselves.

Each module imports its tool, so import the module only if the tool is installed.
"""

__all__: list[str] = []
