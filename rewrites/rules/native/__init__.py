"""Rules that hand a loop or a recurrent node to ortscan's library."""

__all__: list[str] = []
