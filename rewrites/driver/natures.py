"""What a loop computes, in the words of its users, as far as the rules found out."""

from rewrites.base.report import LoopReport

__all__ = ["nature"]

_BY_RULE = {
    "cumulative": "running sum, product or extreme",
    "cumulative-logsumexp": "running logarithm of a sum of powers",
    "linear-recurrence": "linear recurrence s' = a * s + b",
    "gated-recurrence": "linear recurrence s' = a * s + b, with an a of its own in each step",
    "constant-filter": "filter with constant coefficients",
    "linear-attention": "linear attention",
    "pairwise-distance": "distances between the rows of two matrices",
}
_BY_CODE = (
    ("FAST-MATH", "distances between the rows of two matrices"),
    ("LOOP-CONDITION", "steps until a condition says that it is done"),
    ("LINEAR-DECAY", "linear recurrence s' = a * s + b, with an a of its own in each step"),
    ("COST-LINEAR", "linear recurrence s' = a * s + b"),
    ("LINEAR-", "linear recurrence s' = a * s + b"),
    ("SCAN-BLOCKS", "steps that do not need each other, several at once"),
    ("CELL-", "recurrent cell that is no LSTM, GRU or RNN"),
    ("RECURRENCE", "recurrence"),
    ("NATIVE-", "recurrence"),
)
"""By what a reason's code begins with, the most telling first."""
_RECURRENT = ("RNN", "LSTM", "GRU")


def nature(entry: LoopReport) -> str:
    """Return what the loop of ``entry`` computes, or nothing."""
    if entry.kind in _RECURRENT:
        return entry.kind
    found = [fired.made.is_a for fired in entry.fired if fired.made.is_a] or [one.is_a for one in entry.reasons if one.is_a]
    found = found or [_BY_RULE[fired.rule] for fired in entry.fired if fired.rule in _BY_RULE]
    if found:
        return " and ".join(dict.fromkeys(found))
    codes = [reason.code for reason in entry.reasons]
    for begin, said in _BY_CODE:
        if any(code.startswith(begin) for code in codes):
            return said
    is_map = entry.fate == "removed" and any(fired.rule == "loop-fission" for fired in entry.fired)
    return "steps that do not need each other" if is_map else ""
