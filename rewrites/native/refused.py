"""The exception that carries a reason through the compiler."""

from rewrites.base.not_applicable import NotApplicable

__all__ = ["Refused"]


class Refused(Exception):
    """Carries a reason out of the compiler's parts; it never leaves this package."""

    def __init__(self, code: str, detail: str) -> None:
        super().__init__(f"{code}: {detail}")
        self.reason = NotApplicable(code, detail)
