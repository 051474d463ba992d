"""Sockets behave as Python's own do, over a wire within the program."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import random
import selectors
import socket
import threading
from collections.abc import Callable

import pytest

import hopwise_sockets
from conftest import LONG, World
from hopwise_sockets import Network, Socket

MEGABYTE = 1 << 20


class Thread:
    """A thread whose failure is the test's."""

    def __init__(self, work: Callable[[], object]) -> None:
        self.outcome: object = None

        def run() -> None:
            try:
                self.outcome = work()
            except BaseException as error:
                self.outcome = error

        self.thread = threading.Thread(target=run, daemon=True)
        self.thread.start()

    def join(self) -> object:
        self.thread.join(LONG)
        assert not self.thread.is_alive(), "the thread still waits"
        if isinstance(self.outcome, BaseException):
            raise self.outcome
        return self.outcome


def collected(sock: Socket) -> str:
    """The SHA-256 of what comes until the end."""
    digest, buffer = hashlib.sha256(), bytearray(1 << 17)
    while came := sock.recv_into(buffer):
        digest.update(memoryview(buffer)[:came])
    return digest.hexdigest()


def test_twenty_megabytes_pass_whole_in_both_directions_at_once(ends: tuple[Socket, Socket]) -> None:
    data = [random.Random(seed).randbytes(20 * MEGABYTE) for seed in (1, 2)]

    def send(sock: Socket, data: bytes) -> None:
        sock.sendall(data)
        sock.shutdown(socket.SHUT_WR)

    near, far = ends
    senders = [Thread(lambda: send(near, data[0])), Thread(lambda: send(far, data[1]))]
    readers = [Thread(lambda: collected(far)), Thread(lambda: collected(near))]
    for sender in senders:
        sender.join()
    assert [reader.join() for reader in readers] == [hashlib.sha256(part).hexdigest() for part in data]


def test_buffers_of_every_kind_are_sent_and_filled(ends: tuple[Socket, Socket]) -> None:
    near, far = ends
    near.sendall(bytearray(b"by"))
    near.sendall(memoryview(b"-tes-")[1:4])
    assert near.sendmsg([b" of", b"", memoryview(b" parts")]) == 9
    near.shutdown(socket.SHUT_WR)
    buffer = bytearray(b"." * 32)
    filled = 0
    while came := far.recv_into(memoryview(buffer)[filled:], 3):
        assert came <= 3
        filled += came
    assert bytes(buffer[:filled]) == b"bytes of parts"
    assert far.recv(1) == b""
    with pytest.raises(ValueError, match="expected 0 to 32"):
        far.recv_into(buffer, 33)
    with pytest.raises(TypeError):
        near.send("text")  # type: ignore[arg-type]


def test_files_over_a_connection_read_lines_and_keep_it_open(ends: tuple[Socket, Socket]) -> None:
    near, far = ends
    with near.makefile("w", encoding="utf-8", newline="\r\n") as file:
        print("first ä", "second", sep="\n", file=file)
    lines = far.makefile("r", encoding="utf-8")
    far.close()
    assert lines.readline() == "first ä\n"
    assert far.fileno() >= 0, "the file still has it"
    both = near.makefile("rwb")
    both.write(b"third\n")
    both.flush()
    assert lines.readline() == "second\n"
    assert lines.readline() == "third\n"
    lines.close()
    assert far.fileno() == -1
    both.close()
    with pytest.raises(ValueError, match="expected r or w"):
        near.makefile("x")


def test_a_closed_socket_is_a_bad_descriptor(ends: tuple[Socket, Socket]) -> None:
    near, far = ends
    with near:
        near.sendall(b"last")
    assert near.fileno() == -1
    with pytest.raises(OSError, match="closed") as raised:
        near.recv(1)
    assert raised.value.errno == errno.EBADF
    assert [far.recv(64), far.recv(64)] == [b"last", b""]


def test_refused_and_silent_peers_raise_what_python_raises(world: World) -> None:
    with pytest.raises(ConnectionRefusedError) as refused:
        world.here.connect(("10.7.0.2", 9), timeout=LONG)
    assert refused.value.errno == errno.ECONNREFUSED
    with pytest.raises(TimeoutError) as silent:
        world.here.connect(("10.7.0.9", 80), timeout=0.01)
    assert silent.value.errno == errno.ETIMEDOUT
    with pytest.raises(OSError, match="no local address") as other:
        world.here.connect(("fd07::1", 80))
    assert other.value.errno == errno.EADDRNOTAVAIL
    with pytest.raises(OSError) as taken:
        world.there.listen(("", world.server[1]))
    assert taken.value.errno == errno.EADDRINUSE


def test_a_wait_ends_after_its_timeout(world: World, ends: tuple[Socket, Socket]) -> None:
    near, _ = ends
    near.settimeout(0.01)
    assert (near.gettimeout(), near.timeout, near.getblocking()) == (0.01, 0.01, True)
    with pytest.raises(TimeoutError):
        near.recv(1)
    with pytest.raises(TimeoutError):
        near.sendall(bytes(64 * MEGABYTE))
    world.listener.settimeout(0.01)
    with pytest.raises(TimeoutError):
        world.listener.accept()
    with pytest.raises(ValueError, match="out of range"):
        near.settimeout(-1)


def test_a_reset_is_a_reset(ends: tuple[Socket, Socket]) -> None:
    near, far = ends
    near.sendall(b"never read")
    # It waits for what is never read, and so closes with a reset.
    with selectors.DefaultSelector() as selector:
        selector.register(far, selectors.EVENT_READ)
        assert selector.select(LONG)
    far.close()
    with pytest.raises(ConnectionResetError):
        near.recv(1)


def test_selectors_and_sockets_that_do_not_wait_agree(ends: tuple[Socket, Socket]) -> None:
    near, far = ends
    near.setblocking(False)
    with selectors.DefaultSelector() as selector:
        selector.register(near, selectors.EVENT_READ | selectors.EVENT_WRITE)

        def ready(wait: float = 0) -> int:
            events = 0
            for _, mask in selector.select(wait):
                events |= mask
            return events

        assert ready() == selectors.EVENT_WRITE
        with pytest.raises(BlockingIOError):
            near.recv(1)
        far.sendall(b"news")
        selector.modify(near, selectors.EVENT_READ)
        assert ready(LONG) == selectors.EVENT_READ
        assert near.recv(64) == b"news"
        assert ready() == 0

        # What the peer's buffer takes makes room, so that it may be full several times.
        sent = 0
        selector.modify(near, selectors.EVENT_WRITE)
        while ready():
            with contextlib.suppress(BlockingIOError):
                sent += near.send(bytes(1 << 16))
        while sent:
            sent -= len(far.recv(1 << 16))
        assert ready(LONG) == selectors.EVENT_WRITE
        far.close()
        selector.modify(near, selectors.EVENT_READ)
        assert ready(LONG) == selectors.EVENT_READ
        assert near.recv(1) == b""


def test_a_connect_that_does_not_wait_turns_writable(world: World) -> None:
    def opened(address: tuple[str, int]) -> Socket:
        begun = world.here.connect(address, timeout=0)
        with selectors.DefaultSelector() as selector:
            selector.register(begun, selectors.EVENT_WRITE)
            assert selector.select(LONG)
        return begun

    with opened(world.server) as near:
        assert near.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == 0
        far, _ = world.listener.accept()
        with far:
            far.sendall(b"news")
            near.settimeout(LONG)
            assert near.recv(64) == b"news"
    with opened(("10.7.0.2", 9)) as refused:
        with pytest.raises(OSError) as unconnected:
            refused.getpeername()
        assert unconnected.value.errno == errno.ENOTCONN, "the reason is not told here"
        assert refused.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == errno.ECONNREFUSED
        assert refused.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == 0
        with pytest.raises(OSError) as raised:
            refused.send(b"x")
        assert raised.value.errno == errno.ENOTCONN
    # A call that may wait waits for the connection first.
    with world.here.connect(world.server, timeout=0) as near:
        near.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        near.settimeout(LONG)
        far, _ = world.listener.accept()
        with far:
            far.sendall(b"more")
            assert near.recv(64) == b"more"
            assert near.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) == 1


def test_a_shutdown_of_the_reading_side_ends_a_read_of_another_thread(ends: tuple[Socket, Socket]) -> None:
    near, far = ends
    waits = Thread(lambda: near.recv(1))
    near.shutdown(socket.SHUT_RD)
    assert waits.join() == b""
    near.sendall(b"still")
    assert far.recv(64) == b"still"
    with pytest.raises(ValueError, match="SHUT_RD"):
        near.shutdown(7)


def test_options_are_those_that_there_are(ends: tuple[Socket, Socket]) -> None:
    near, _ = ends
    assert near.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) == 0
    near.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    assert near.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) == 1
    assert near.getsockopt(socket.SOL_SOCKET, socket.SO_TYPE) == socket.SOCK_STREAM
    for refuse in (lambda: near.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1), lambda: near.recv(1, 2)):
        with pytest.raises(OSError, match="expected"):
            refuse()


def test_agents_are_those_of_the_connection_else_of_listener_or_network(world: World) -> None:
    world.here.set_agents(receiver="dca", senders="[newreno]")
    with world.there.listen(("", 0), receiver="delayed:d=4") as listener:
        listener.settimeout(LONG)
        server = ("10.7.0.2", listener.getsockname()[1])
        with world.here.connect(server, timeout=LONG) as near:
            far, _ = listener.accept()
            with far, world.here.connect(server, timeout=LONG, receiver="immediate") as own:
                chosen = [(sock.agents() or ("", ""))[0] for sock in (near, far, own)]
                assert chosen == ["dca", "delayed:d=4", "immediate"]
                assert near.agents() == ("dca", "[newreno]")
    with pytest.raises(ValueError, match="no-such"):
        world.here.connect(world.server, receiver="no-such")


def test_settings_that_cannot_work_are_refused_with_what_would_be_accepted() -> None:
    with pytest.raises(ValueError, match=r"10\.7\.0\.1/24"):
        Network.tun("nowhere")
    with pytest.raises(ValueError, match="expected one or more"):
        Network.tun([])
    with pytest.raises(ValueError, match="in no subnet"):
        Network.tun("10.7.0.1/24", kernel="10.8.0.2/24")
    with pytest.raises(ValueError, match="in no subnet"):
        Network.device("lo", "10.7.0.1/24", gateway="10.8.0.1")
    with pytest.raises(ValueError, match="expected an address of its own"):
        Network.pair("10.7.0.1/24", "10.7.0.1/24")


def test_addresses_of_ipv6_are_written_as_python_does() -> None:
    here, there = Network.pair("fd07::1/64", "fd07::2/64")
    with here, there, there.listen(("::", 80)) as listener:
        listener.settimeout(LONG)
        assert listener.getsockname() == ("::", 80, 0, 0)
        with here.connect(("fd07::2", 80, 0, 0), timeout=LONG) as near:
            far, peer = listener.accept()
            assert peer == far.getpeername() == near.getsockname()
            assert (near.family, near.type) == (socket.AF_INET6, socket.SOCK_STREAM)
            assert near.getpeername() == ("fd07::2", 80, 0, 0)
            far.close()


def test_the_end_of_a_network_waits_for_what_was_sent() -> None:
    here, there = Network.pair("10.7.0.1/24", "10.7.0.2/24")

    def read() -> str:
        with far:
            return collected(far)

    with there, there.listen(("", 80)) as listener:
        listener.settimeout(LONG)
        with here, here.connect(("10.7.0.2", 80), timeout=LONG) as near:
            far, _ = listener.accept()
            near.setblocking(False)
            sent = 0
            with contextlib.suppress(BlockingIOError):
                while True:
                    sent += near.send(bytes(1 << 16))
            reads = Thread(read)
        assert reads.join() == hashlib.sha256(bytes(sent)).hexdigest()
        with pytest.raises(OSError, match="closed"):
            here.connect(("10.7.0.2", 80))
        assert here.close() == 0


def test_the_package_names_what_it_has() -> None:
    assert sorted(hopwise_sockets.__all__) == ["Listener", "Network", "Socket"]
