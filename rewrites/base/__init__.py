"""What every floor may use: errors, refusals as values, names fit for messages, what a target can do, what is reported.

Nothing here knows a graph.
"""

__all__: list[str] = []
