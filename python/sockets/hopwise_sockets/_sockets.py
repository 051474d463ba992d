"""Sockets: connections, and ports that accept them.

The compiled part never waits. A call that may wait asks `select.poll` for the descriptor. Other threads then run, and
Ctrl-C ends the wait, as with Python's own sockets.
"""

from __future__ import annotations

import errno
import io
import math
import select
import socket
import threading
import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeVar

from . import _native

if TYPE_CHECKING:
    from typing_extensions import Buffer, Self

T = TypeVar("T")

#: The most that one call hands over. More would only be copied twice: it is no more than a buffer takes at once.
PIECE = 1 << 18

#: The seconds after which a call that waits looks whether it is still in the process of its network.
LONGEST_POLL = 0.5


class _Waits:
    """What connections and listeners have in common: a descriptor, and the way in which calls wait for it."""

    type = socket.SOCK_STREAM
    proto = socket.IPPROTO_TCP

    def __init__(self, native: _native.Stream | _native.Listener, end: tuple[str, int], most: float | None) -> None:
        self._file = native
        self._most = _checked(most)
        self.family = socket.AF_INET6 if ":" in end[0] else socket.AF_INET

    def fileno(self) -> int:
        """The descriptor for `selectors`, `select` and event loops; -1 once it is closed."""
        return self._file.fileno()

    def settimeout(self, timeout: float | None) -> None:
        """Sets the longest wait of a call in seconds; 0 does not wait, and None waits without end."""
        self._most = _checked(timeout)

    def gettimeout(self) -> float | None:
        """The longest wait of a call in seconds."""
        return self._most

    def setblocking(self, flag: bool) -> None:
        """Sets whether calls wait."""
        self._most = None if flag else 0.0

    def getblocking(self) -> bool:
        """Returns whether calls wait."""
        return self._most != 0

    @property
    def timeout(self) -> float | None:
        """The longest wait of a call in seconds."""
        return self._most

    def _deadline(self) -> float | None:
        return None if self._most is None else time.monotonic() + self._most

    def _repeat(self, call: Callable[[], T], event: int, deadline: float | None) -> T:
        """Repeats a call until it does not have to wait, or the time is over."""
        while True:
            try:
                return call()
            except BlockingIOError:
                if self._most == 0:
                    raise
            self._wait(event, deadline)

    def _wait(self, event: int, deadline: float | None) -> None:
        """Waits for an event. A signal's handler may fork meanwhile: in its child there is nothing to wait for."""
        poll = select.poll()
        poll.register(self.fileno(), event)
        while True:
            rest = LONGEST_POLL if deadline is None else min(deadline - time.monotonic(), LONGEST_POLL)
            if poll.poll(math.ceil(max(0.0, rest) * 1000)) or self.fileno() < 0:
                return
            if rest <= 0.0:
                raise TimeoutError(errno.ETIMEDOUT, "timed out")

    def _end(self, end: tuple[str, int]) -> tuple[Any, ...]:
        """An address as Python's sockets write it: with two numbers more for IPv6."""
        return (*end, 0, 0) if self.family == socket.AF_INET6 else end

    def close(self) -> None:
        """Closes it."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()


class Socket(_Waits):
    """A connection, like a connected `socket.socket`. Its drop closes it."""

    def __init__(self, native: _native.Stream, peer: tuple[str, int], timeout: float | None) -> None:
        super().__init__(native, peer, timeout)
        self._native = native
        self._lock = threading.Lock()
        self._files = 0
        self._is_closed = False

    @classmethod
    def _opened(cls, native: _native.Stream, peer: tuple[str, int], timeout: float | None) -> Socket:
        opened = cls(native, peer, timeout)
        if timeout != 0:
            try:
                opened._repeat(native.connected, select.POLLOUT, opened._deadline())
            except BaseException:
                native.close()
                raise
        return opened

    def recv(self, bufsize: int, flags: int = 0) -> bytes:
        """Reads what has come, at most `bufsize` bytes; b"" is the end."""
        _no_flags(flags)
        if bufsize < 0:
            raise ValueError("negative buffersize in recv")
        most = min(bufsize, PIECE)
        return self._repeat(lambda: self._native.recv(most), select.POLLIN, self._deadline())

    def recv_into(self, buffer: Buffer, nbytes: int = 0, flags: int = 0) -> int:
        """Reads what has come into a buffer, at most `nbytes` bytes, or what it holds if that is 0."""
        with memoryview(buffer) as whole, whole.cast("B") as view:
            if not 0 <= nbytes <= len(view):
                raise ValueError(f"nbytes {nbytes}: expected 0 to {len(view)}, which the buffer holds")
            came = self.recv(nbytes or len(view), flags)
            view[: len(came)] = came
            return len(came)

    def send(self, data: Buffer, flags: int = 0) -> int:
        """Sends as much of the data as there is room for, and returns the number of bytes."""
        _no_flags(flags)
        with memoryview(data) as whole, whole.cast("B") as view:
            return self._send(view, 0, self._deadline())

    def sendall(self, data: Buffer, flags: int = 0) -> None:
        """Sends all of the data. The timeout is for all of it."""
        _no_flags(flags)
        deadline = self._deadline()
        with memoryview(data) as whole, whole.cast("B") as view:
            sent = self._send(view, 0, deadline)
            while sent < len(view):
                sent += self._send(view, sent, deadline)

    def sendmsg(self, buffers: Iterable[Buffer]) -> int:
        """Sends from several buffers as much as there is room for, and returns the number of bytes."""
        return self.send(b"".join(buffers))

    def _send(self, view: memoryview, begin: int, deadline: float | None) -> int:
        piece = view[begin : begin + PIECE].tobytes()
        return self._repeat(lambda: self._native.send(piece), select.POLLOUT, deadline)

    def shutdown(self, how: int) -> None:
        """Ends one side or both: `socket.SHUT_RD`, `SHUT_WR` or `SHUT_RDWR`. The peer of SHUT_WR reads the end."""
        self._native.shutdown(how)

    def getsockname(self) -> tuple[Any, ...]:
        """Address and port of this end."""
        return self._end(self._native.local())

    def getpeername(self) -> tuple[Any, ...]:
        """Address and port of the peer."""
        return self._end(self._native.peer())

    def setsockopt(self, level: int, option: int, value: int) -> None:
        """Sets an option: TCP_NODELAY is the one that there is."""
        if (level, option) != (socket.IPPROTO_TCP, socket.TCP_NODELAY):
            raise _no_option(level, option)
        self._native.set_nodelay(bool(value))

    def getsockopt(self, level: int, option: int) -> int:
        """An option: TCP_NODELAY, SO_TYPE, or SO_ERROR, which tells once why a connection failed."""
        match (level, option):
            case (socket.IPPROTO_TCP, socket.TCP_NODELAY):
                return int(self._native.nodelay())
            case (socket.SOL_SOCKET, socket.SO_ERROR):
                return self._native.take_error()
            case (socket.SOL_SOCKET, socket.SO_TYPE):
                return int(self.type)
            case _:
                raise _no_option(level, option)

    def agents(self) -> tuple[str, str] | None:
        """The receiver agent and the list of sender agents; None before the connection stands, and once it is over."""
        return self._native.agents()

    def makefile(
        self,
        mode: str = "r",
        buffering: int | None = None,
        *,
        encoding: str | None = None,
        errors: str | None = None,
        newline: str | None = None,
    ) -> Any:  # noqa: ANN401 - as the standard library's
        """A file over the connection, as `socket.makefile` has it: "r" or "w" or both, with "b" for bytes."""
        if not mode or not set(mode) <= {"r", "w", "b"}:
            raise ValueError(f"invalid mode {mode!r}: expected r or w or both, and b for bytes")
        reads, writes = "r" in mode or "w" not in mode, "w" in mode
        if buffering is None or buffering < 0:
            buffering = io.DEFAULT_BUFFER_SIZE
        if buffering == 0 and "b" not in mode:
            raise ValueError("unbuffered streams must be binary")
        raw = _File(self, reads, writes)
        if buffering == 0:
            return raw
        buffered: io.BufferedReader | io.BufferedWriter | io.BufferedRWPair
        if reads and writes:
            buffered = io.BufferedRWPair(raw, raw, buffering)
        elif writes:
            buffered = io.BufferedWriter(raw, buffering)
        else:
            buffered = io.BufferedReader(raw, buffering)
        if "b" in mode:
            return buffered
        return io.TextIOWrapper(buffered, encoding, errors, newline)

    def close(self) -> None:
        """Closes the connection, once its files are closed too. What was sent is delivered while its network lives."""
        # A forked child has nothing to close, and may find the lock held by a thread that it does not have.
        if self.fileno() >= 0:
            with self._lock:
                self._is_closed = True
                if self._files == 0:
                    self._native.close()

    def _file_opened(self) -> None:
        if self.fileno() >= 0:
            with self._lock:
                self._files += 1

    def _file_closed(self) -> None:
        if self.fileno() >= 0:
            with self._lock:
                self._files -= 1
                if self._files == 0 and self._is_closed:
                    self._native.close()

    def __repr__(self) -> str:
        if self.fileno() < 0:
            return "<hopwise_sockets.Socket, closed>"
        return f"<hopwise_sockets.Socket fd={self.fileno()}>"


class Listener(_Waits):
    """A port that accepts connections, like a listening `socket.socket`."""

    def __init__(self, native: _native.Listener, ip: str) -> None:
        super().__init__(native, (ip, 0), None)
        self._native, self._ip = native, ip

    def accept(self) -> tuple[Socket, tuple[Any, ...]]:
        """The next connection, and the address of its peer. The connection waits without end at first."""
        stream = self._repeat(self._native.accept, select.POLLIN, self._deadline())
        accepted = Socket(stream, stream.peer(), None)
        return accepted, accepted.getpeername()

    def listen(self, backlog: int = 0) -> None:
        """Does nothing: a listener listens from its beginning. Servers of the standard library call it."""

    def getsockname(self) -> tuple[Any, ...]:
        """Address and port on which it listens."""
        return self._end((self._ip, self._native.port()))

    def __repr__(self) -> str:
        if self.fileno() < 0:
            return "<hopwise_sockets.Listener, closed>"
        return f"<hopwise_sockets.Listener fd={self.fileno()} at={self.getsockname()}>"


class _File(io.RawIOBase):
    """What `makefile` buffers."""

    def __init__(self, of: Socket, reads: bool, writes: bool) -> None:
        super().__init__()
        self._socket, self._reads, self._writes = of, reads, writes
        of._file_opened()

    def readable(self) -> bool:
        return self._reads and not self.closed

    def writable(self) -> bool:
        return self._writes and not self.closed

    def fileno(self) -> int:
        return self._socket.fileno()

    def readinto(self, buffer: Buffer) -> int | None:
        try:
            return self._socket.recv_into(buffer)
        except BlockingIOError:
            return None

    def write(self, data: Buffer) -> int | None:
        try:
            return self._socket.send(data)
        except BlockingIOError:
            return None

    def close(self) -> None:
        if not self.closed:
            super().close()
            self._socket._file_closed()


def _checked(timeout: float | None) -> float | None:
    if timeout is not None and not timeout >= 0:
        raise ValueError("Timeout value out of range: expected seconds from 0 on, or None")
    return timeout


def _no_flags(flags: int) -> None:
    if flags != 0:
        raise OSError(errno.EOPNOTSUPP, f"flags {flags}: expected 0")


def _no_option(level: int, option: int) -> OSError:
    return OSError(errno.ENOPROTOOPT, f"option {option} of level {level}: expected TCP_NODELAY, SO_ERROR or SO_TYPE")
