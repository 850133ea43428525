"""What attacks are written with, and what runs them."""

from tests.campaigns.attacks.frame.box import Box
from tests.campaigns.attacks.frame.demands import another, command, refused, survived
from tests.campaigns.attacks.frame.faults import interrupted_at_each_line, killed_at_each_file_event
from tests.campaigns.attacks.frame.registry import Attack, all_attacks, attack
from tests.campaigns.attacks.frame.verbs import attack_all_verbs, model_of, survives_all_verbs

__all__ = [
    "Attack",
    "Box",
    "all_attacks",
    "another",
    "attack",
    "attack_all_verbs",
    "command",
    "interrupted_at_each_line",
    "killed_at_each_file_event",
    "model_of",
    "refused",
    "survived",
    "survives_all_verbs",
]
