"""Networks: where a program's packets go."""

from __future__ import annotations

import socket
from collections.abc import Sequence

from . import _native
from ._sockets import Listener, Socket

#: An address and a port; those of IPv6 may have the two numbers more that Python's sockets give them.
Address = tuple[str, int] | tuple[str, int, int, int]


class Network:
    """A TCP/IP of the program's own. `Network.tun`, `Network.device` and `Network.pair` open one.

    At the end of a `with` it waits until what was sent is delivered, as `close` does.
    """

    def __init__(self, native: _native.Network) -> None:
        self._native = native

    @classmethod
    def tun(
        cls,
        address: str | Sequence[str],
        *,
        kernel: str | Sequence[str] = (),
        name: str | None = None,
        mtu: int | None = None,
        receiver: str | None = None,
        senders: str | None = None,
    ) -> Network:
        """Opens a network on a TUN device, whose packets the kernel routes. It takes CAP_NET_ADMIN.

        `address` is one or more of its own with their subnets, such as "10.7.0.1/24". `kernel` are addresses of the
        kernel on the device: without one, the kernel routes the subnets to it. `name` and `mtu` are the device's.
        `receiver` and `senders` are the agents of connections that name none, such as "dca" and "[cubic]".
        """
        return cls(_native.Network.tun(_texts(address), _texts(kernel), name, mtu, receiver, senders))

    @classmethod
    def device(
        cls,
        name: str,
        address: str | Sequence[str],
        *,
        gateway: str | None = None,
        receiver: str | None = None,
        senders: str | None = None,
    ) -> Network:
        """Opens a network on an Ethernet or Wi-Fi device, beside the kernel. It takes CAP_NET_ADMIN and CAP_NET_RAW.

        `address` is one or more that neither the kernel nor another host has. `gateway` is the router to other subnets.
        """
        return cls(_native.Network.device(name, _texts(address), gateway, receiver, senders))

    @classmethod
    def pair(cls, address: str, others: str) -> tuple[Network, Network]:
        """Opens two networks with a wire between them, for tests. It takes no rights."""
        near, far = _native.Network.pair(address, others)
        return cls(near), cls(far)

    def set_agents(self, *, receiver: str | None = None, senders: str | None = None) -> None:
        """Sets the agents of new connections that name none. None is the default of Hopwise."""
        self._native.set_agents(receiver, senders)

    def connect(
        self,
        address: Address,
        timeout: float | None = None,
        *,
        receiver: str | None = None,
        senders: str | None = None,
    ) -> Socket:
        """Opens a connection, to the first address of the host that answers.

        `timeout` bounds the wait for each address, and stays the socket's timeout. With 0 it does not wait: the socket
        turns writable once the connection stands or has failed, and `getsockopt(SOL_SOCKET, SO_ERROR)` says which.
        """
        last: OSError | None = None
        for ip, port in _looked_up(address):
            try:
                native = self._native.connect(ip, port, receiver, senders)
                return Socket._opened(native, (ip, port), timeout)
            except OSError as error:
                last = error
        raise last or OSError(f"{address[0]!r} has no address")

    def listen(self, address: Address, *, receiver: str | None = None, senders: str | None = None) -> Listener:
        """Waits for connections: "" and "0.0.0.0" are all addresses, and port 0 is any that is free.

        `receiver` and `senders` are the agents of its connections.
        """
        host, port = address[0] or "0.0.0.0", address[1]
        [(ip, port), *_] = _looked_up((host, port))
        return Listener(self._native.listen(ip, port, receiver, senders), ip)

    def close(self, within: float = 5.0) -> int:
        """Ends the network, after at most `within` seconds for what was sent to be delivered.

        Returns the number of connections that were reset then.
        """
        return self._native.close(within)

    def __enter__(self) -> Network:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()


def _texts(one_or_more: str | Sequence[str]) -> list[str]:
    return [one_or_more] if isinstance(one_or_more, str) else list(one_or_more)


def _looked_up(address: Address) -> list[tuple[str, int]]:
    """The addresses of a host, by the system; a network has no names of its own."""
    host, port = address[0], address[1]
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [(str(end[0]), int(end[1])) for *_, end in found]
