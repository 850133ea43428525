"""How exporters write loops, made plain: what is left of a Loop then is a Scan, or has a reason not to be one."""

__all__: list[str] = []
