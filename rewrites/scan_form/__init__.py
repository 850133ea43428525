"""Scans made plain: axes, directions, induction variables, packed states. Rules on Loops alone are ``loop_form``'s."""

__all__: list[str] = []
