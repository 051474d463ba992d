"""TCP of the program's own, with sockets like those of the standard library.

>>> import hopwise_sockets
>>> here, there = hopwise_sockets.Network.pair("10.7.0.1/24", "10.7.0.2/24")
>>> with there.listen(("10.7.0.2", 80)) as listener, here.connect(("10.7.0.2", 80), timeout=10) as near:
...     far, peer = listener.accept()
...     far.sendall(b"news")
...     near.recv(64)
4
b'news'

A `Network` is a TCP/IP on a device of its own, or on a wire within the program. It opens a `Socket` for a connection
and a `Listener` for a port. The page docs/library.md of Hopwise explains the rest.
"""

from ._network import Network
from ._sockets import Listener, Socket

__all__ = ["Listener", "Network", "Socket"]
