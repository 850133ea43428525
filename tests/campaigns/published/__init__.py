"""Models that Python packages ship, run through all that ortscan does; nothing of them is kept here but what came of it."""
