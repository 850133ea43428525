from tests.ortscan.session.conftest import cache

__all__ = ["cache"]
