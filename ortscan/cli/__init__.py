"""The command line, a file per verb. Only this package prints; everything heavy is imported when a verb runs."""

__all__: list[str] = []
