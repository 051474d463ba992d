"""What takes a socket takes one of ours: HTTP of the standard library, asyncio, signals, the kernel."""

from __future__ import annotations

import asyncio
import hashlib
import http.client
import http.server
import io
import os
import random
import shutil
import signal
import ssl
import subprocess
import sys
import textwrap
import threading
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from conftest import LONG, World

BODY = random.Random(3).randbytes(3 << 20)


class Echo(http.server.BaseHTTPRequestHandler):
    """Answers GET with a body, and POST with what was sent."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self.answer(BODY)

    def do_POST(self) -> None:
        self.answer(self.rfile.read(int(self.headers["content-length"])))

    def answer(self, body: bytes) -> None:
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Nobody reads a log here."""


@pytest.fixture
def web(world: World) -> Iterator[World]:
    """A server of HTTP: a thread for each connection."""

    def serve(connection: object, peer: object) -> None:
        with connection:  # type: ignore[attr-defined]
            Echo(connection, peer, None)  # type: ignore[arg-type]

    def accept() -> None:
        while True:
            try:
                connection, peer = world.listener.accept()
            except OSError:
                return
            threading.Thread(target=serve, args=(connection, peer), daemon=True).start()

    thread = threading.Thread(target=accept, daemon=True)
    thread.start()
    yield world
    world.listener.close()


def connection(world: World) -> http.client.HTTPConnection:
    """A connection of http.client over a network of ours."""

    class Over(http.client.HTTPConnection):
        def connect(self) -> None:
            self.sock = world.here.connect((self.host, self.port), timeout=LONG)

    return Over(*world.server)


def test_http_client_asks_twice_over_one_connection(web: World) -> None:
    client = connection(web)
    client.request("GET", "/")
    assert hashlib.sha256(client.getresponse().read()).digest() == hashlib.sha256(BODY).digest()
    client.request("POST", "/", io.BytesIO(BODY[: 1 << 20]), {"content-length": str(1 << 20)})
    answer = client.getresponse()
    assert (answer.status, answer.read()) == (200, BODY[: 1 << 20])
    client.close()


def test_urllib_opens_addresses_over_a_network(web: World) -> None:
    class Handler(urllib.request.HTTPHandler):
        def http_open(self, request: urllib.request.Request) -> http.client.HTTPResponse:
            return self.do_open(lambda host, **_: connection(web), request)

    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), Handler)
    with opener.open(f"http://10.7.0.2:{web.server[1]}/page") as answer:
        assert answer.read() == BODY


def test_streams_of_asyncio_carry_both_directions(world: World) -> None:
    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while part := await reader.read(1 << 16):
            writer.write(part)
            await writer.drain()
        writer.close()

    async def client(nth: int) -> bool:
        near = world.here.connect(world.server, timeout=0)
        reader, writer = await asyncio.open_connection(sock=near)
        data = random.Random(nth).randbytes(1 << 20)

        async def send() -> None:
            writer.write(data)
            await writer.drain()
            writer.write_eof()

        _, back = await asyncio.gather(send(), reader.read(-1))
        writer.close()
        return back == data

    async def both() -> list[bool]:
        world.listener.setblocking(False)
        server = await asyncio.start_server(echo, sock=world.listener)
        try:
            return await asyncio.wait_for(asyncio.gather(*map(client, range(5))), LONG)
        finally:
            server.close()

    assert asyncio.run(both()) == [True] * 5

    async def refused() -> None:
        near = world.here.connect(("10.7.0.2", 9), timeout=0)
        reader, writer = await asyncio.open_connection(sock=near)
        try:
            await asyncio.wait_for(reader.read(1), LONG)
        finally:
            writer.close()

    with pytest.raises(ConnectionRefusedError):
        asyncio.run(refused())


def test_tls_of_asyncio_runs_over_a_connection(world: World, tmp_path: Path) -> None:
    if shutil.which("openssl") is None:
        pytest.skip("the command openssl is not installed")
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    make = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"]
    names = ["-subj", "/CN=there", "-addext", "subjectAltName=DNS:there"]
    subprocess.run([*make, *names, "-keyout", key, "-out", certificate], check=True, capture_output=True)
    of_server = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    of_server.load_cert_chain(certificate, key)
    of_client = ssl.create_default_context(cafile=str(certificate))

    async def serve(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(BODY)
        await writer.drain()
        writer.close()

    async def fetch() -> bytes:
        world.listener.setblocking(False)
        server = await asyncio.start_server(serve, sock=world.listener, ssl=of_server)
        near = world.here.connect(world.server, timeout=0)
        reader, writer = await asyncio.open_connection(sock=near, ssl=of_client, server_hostname="there")
        try:
            return await asyncio.wait_for(reader.read(-1), LONG)
        finally:
            writer.close()
            server.close()

    assert asyncio.run(fetch()) == BODY


WAITS = {
    "recv": "near.recv(1)",
    "accept": "listener.accept()",
    "connect": 'here.connect(("10.7.0.9", 80))',
    "sendall": "near.sendall(bytes(1 << 28))",
}


@pytest.mark.parametrize("wait", WAITS)
def test_ctrl_c_ends_a_wait(wait: str) -> None:
    program = f"""
        import signal
        from hopwise_sockets import Network
        # A shell lets programs in its background ignore it.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        here, there = Network.pair("10.7.0.1/24", "10.7.0.2/24")
        listener = there.listen(("", 80))
        near = here.connect(("10.7.0.2", 80))
        far, _ = listener.accept()
        try:
            print("waits", flush=True)
            {WAITS[wait]}
        except KeyboardInterrupt:
            print("interrupted", flush=True)
            near.close()
    """
    command = [sys.executable, "-c", textwrap.dedent(program)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "waits\n"
        sleeps(child.pid)
        child.send_signal(signal.SIGINT)
        try:
            out, _ = child.communicate(timeout=LONG)
        finally:
            child.kill()
    assert (out, child.returncode) == ("interrupted\n", 0)


def sleeps(pid: int) -> None:
    """Returns once the main thread of a process has slept for several looks in a row."""
    seen, until = 0, time.monotonic() + LONG
    while seen < 5:
        assert time.monotonic() < until, "it never waits"
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        assert state not in "ZX", "it has ended"
        seen = seen + 1 if state == "S" else 0
        time.sleep(0.02)


def test_the_kernel_talks_to_a_network_on_a_tun_device() -> None:
    enter = ["unshare", "--user", "--map-root-user", "--net"]
    if not os.access("/dev/net/tun", os.R_OK | os.W_OK):
        pytest.skip("/dev/net/tun is closed to this user")
    if shutil.which("unshare") is None or subprocess.run([*enter, "true"], capture_output=True).returncode != 0:
        pytest.skip("this machine lets nobody make a network namespace of a user's own")
    program = """
        import hashlib, socket, threading
        from hopwise_sockets import Network
        data = bytes(range(256)) * 20000
        with Network.tun("10.7.0.1/24", kernel="10.7.0.2/24", receiver="dca") as network:
            with network.listen(("", 80)) as listener:
                def serve():
                    ours, peer = listener.accept()
                    with ours:
                        ours.sendall(hashlib.sha256(ours.makefile("rb").read()).digest())
                thread = threading.Thread(target=serve)
                thread.start()
                with socket.create_connection(("10.7.0.1", 80), timeout=60) as kernels:
                    kernels.sendall(data)
                    kernels.shutdown(socket.SHUT_WR)
                    assert kernels.makefile("rb").read() == hashlib.sha256(data).digest()
                thread.join()
            with socket.create_server(("10.7.0.2", 81)) as server:
                with network.connect(("10.7.0.2", 81), timeout=60) as ours:
                    kernels, peer = server.accept()
                    assert peer == ours.getsockname()
                    thread = threading.Thread(target=lambda: (kernels.sendall(data), kernels.close()))
                    thread.start()
                    assert ours.makefile("rb").read() == data
                    thread.join()
        print("both")
    """
    command = [*enter, sys.executable, "-c", textwrap.dedent(program)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LONG)
    assert (done.stdout, done.stderr) == ("both\n", "")


def test_a_user_without_rights_reads_which_are_missing() -> None:
    program = """
        import os
        from hopwise_sockets import Network
        if os.geteuid() == 0:
            os.setresuid(65534, 65534, 65534)
        try:
            Network.device("lo", "10.7.0.1/24")
        except PermissionError as error:
            print(error.errno, "CAP_NET_RAW" in str(error))
    """
    command = [sys.executable, "-c", textwrap.dedent(program)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LONG)
    assert (done.stdout, done.stderr) == ("1 True\n", "")
