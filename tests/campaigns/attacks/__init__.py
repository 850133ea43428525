"""Attacks: hostile models, files, sizes and moments, each in a process of its own with limits of time and memory.

Each must end with one clear sentence, or with the right result, and with nothing else: no signal, no hang, no foreign exception, no
file anywhere it was not asked for. Every module here is one area; its attacks are found by being there. To add one:

    from tests.campaigns.attacks.frame import Box, attack, refused

    @attack("an absolute location", seconds=10, memory=1 << 30)
    def _(box: Box) -> None:
        path = ...                                                  # build what attacks, below ``box.work`` (the working folder)
        refused(lambda: ortscan.optimize(path), "'w'", "absolute")  # then say what must come of it

The function runs in a process forked from one that has imported numpy, onnx, onnxruntime and ortscan, which takes a hundredth of a
second; where it matters what was imported before, start a new interpreter in it with ``another``. The attack fails if it raises. Around it the frame checks that

* the process ends by itself with 0, within ``seconds`` and with no more than ``memory`` bytes of its own at once;
* nothing outside ``box.work``, the home folder and the cache of the process was made, changed or removed (``box.outside`` holds a
  few files to be tempted by);
* no temporary file is left, and no process.

``refused(call, *words)`` demands an OrtscanError of one line that holds the words; ``survived(call)`` lets the call succeed too;
``command(*arguments)`` runs the command line and demands the same of what it says; ``another(code)`` runs Python code in one more
process, for what may end by a signal. For a table of attacks of one kind, call ``attack`` in a loop, with ``functools.partial``.

``python -m tests.campaigns attacks`` runs them all, or those whose names hold a word, and prints the figures.
"""
