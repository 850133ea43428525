"""What attacks are written with, and what runs them."""

from tests.attacks.frame.box import Box
from tests.attacks.frame.demands import another, command, refused, survived
from tests.attacks.frame.faults import interrupted_at_each_line, killed_at_each_file_event
from tests.attacks.frame.registry import Attack, all_attacks, attack

__all__ = [
    "Attack",
    "Box",
    "all_attacks",
    "another",
    "attack",
    "command",
    "interrupted_at_each_line",
    "killed_at_each_file_event",
    "refused",
    "survived",
]
