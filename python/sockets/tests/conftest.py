"""Two networks with a wire between them, and a connection over it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from hopwise_sockets import Listener, Network, Socket

#: A test that waits this long for something has failed.
LONG = 60.0


@dataclass
class World:
    """The server's network listens; the client's connects."""

    here: Network
    there: Network
    listener: Listener

    @property
    def server(self) -> tuple[str, int]:
        return "10.7.0.2", self.listener.getsockname()[1]


@pytest.fixture
def world() -> Iterator[World]:
    here, there = Network.pair("10.7.0.1/24", "10.7.0.2/24")
    with here, there, there.listen(("", 0)) as listener:
        listener.settimeout(LONG)
        yield World(here, there, listener)


@pytest.fixture
def ends(world: World) -> Iterator[tuple[Socket, Socket]]:
    """Both ends of a connection: the client's, and the server's."""
    with world.here.connect(world.server, timeout=LONG) as near:
        far, peer = world.listener.accept()
        assert peer == near.getsockname()
        far.settimeout(LONG)
        with far:
            yield near, far
