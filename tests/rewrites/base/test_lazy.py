"""Properties that are computed once, by as many threads as ask for them."""

import threading

from rewrites.base.lazy import lazy


class Ping:
    def __init__(self, other: "Pong | None", meet: threading.Barrier) -> None:
        self.other, self.meet, self.asked = other, meet, 0

    @lazy
    def key(self) -> str:
        """One."""
        self.asked += 1
        self.meet.wait(10)
        return "ping" if self.other is None else f"ping {self.other.key}"


class Pong:
    def __init__(self, other: Ping | None, meet: threading.Barrier) -> None:
        self.other, self.meet = other, meet

    @lazy
    def key(self) -> str:
        """Other."""
        self.meet.wait(10)
        return "pong" if self.other is None else f"pong {self.other.key}"


def test_two_threads_do_not_wait_for_each_other_for_ever() -> None:
    first, second = threading.Barrier(2), threading.Barrier(2)
    ping, pong = Ping(Pong(None, second), first), Pong(Ping(None, second), first)
    keys: list[str] = []
    threads = [threading.Thread(target=lambda one=one: keys.append(one.key), daemon=True) for one in (ping, pong)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert sorted(keys) == ["ping pong", "pong ping"]


def test_it_is_computed_once() -> None:
    ping = Ping(None, threading.Barrier(1))
    assert (ping.key, ping.key, ping.asked) == ("ping", "ping", 1)
    assert Ping.key.__doc__ == "One."
