"""A forked child has no networks of its parent, and does nothing to them."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest

from conftest import LONG

BEGIN = """
    import errno, gc, multiprocessing, os, signal, sys, threading
    from hopwise_sockets import Network

    def opened():
        here, there = Network.pair("10.7.0.1/24", "10.7.0.2/24")
        listener = there.listen(("", 80))
        near = here.connect(("10.7.0.2", 80), timeout=60)
        far, _ = listener.accept()
        far.settimeout(60)
        return here, there, listener, near, far

    def is_unknown(call, *with_these, **named):
        try:
            call(*with_these, **named)
        except OSError as error:
            assert error.errno == errno.EBADF and "parent of this process" in str(error), error
        else:
            raise AssertionError(f"{call} is no error")

    here, there, listener, near, far = opened()
    file = near.makefile("rwb")
"""

ACTS = {
    "uses": """
        is_unknown(near.send, b"x")
        is_unknown(near.recv, 1)
        is_unknown(near.shutdown, 1)
        is_unknown(near.agents)
        is_unknown(listener.accept)
        is_unknown(listener.getsockname)
        is_unknown(here.connect, ("10.7.0.2", 80), timeout=1)
        is_unknown(here.listen, ("", 81))
        is_unknown(here.set_agents, receiver="dca")
        assert [near.fileno(), listener.fileno()] == [-1, -1]
    """,
    "closes": """
        file.close()
        for each in near, far, listener, there:
            each.close()
        assert here.close(within=0.5) == 0
    """,
    "drops": """
        del here, there, listener, near, far, file
        gc.collect()
    """,
    "writes into a buffer": """
        file.write(b"x")
        is_unknown(file.flush)
        os._exit(0)
    """,
    "exits": "",
    "opens its own": """
        here, there, listener, near, far = opened()
        near.sendall(b"own")
        assert far.recv(64) == b"own"
        near.close()
        assert far.recv(64) == b""
    """,
}

FORK = """
    child = os.fork()
    if child == 0:
        # A child that waits for a lock ends by this.
        signal.alarm(60)
        {act}
        sys.exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
"""

# The lock of a socket, which Python's threads take, is held at the time of the fork.
HELD = """
    child = 0
    with near._lock:
        child = os.fork()
        if child == 0:
            signal.alarm(60)
            thread = threading.Thread(target=lambda: (file.close(), near.close()), daemon=True)
            thread.start()
            thread.join()
            os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
"""

# Python goes on to wait once a handler has returned, in the child as well.
HANDLER = """
    parent = os.getpid()

    def forks(number, frame):
        global child
        child = os.fork()
        if child == 0:
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.alarm(60)
        else:
            far.sendall(b"DDDD")

    signal.signal(signal.SIGALRM, forks)
    signal.setitimer(signal.ITIMER_REAL, 0.2)
    near.settimeout({timeout})
    try:
        came = near.recv(64)
    except OSError as error:
        os._exit(0 if os.getpid() != parent and error.errno == errno.EBADF else 1)
    if os.getpid() != parent:
        os._exit(2)
    assert came == b"DDDD", came
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
"""

PROCESS = """
    def child(sock):
        is_unknown(sock.sendall, b"x")
        is_unknown(sock.sendall, b"")
        sock.close()

    process = multiprocessing.get_context("fork").Process(target=child, args=(near,))
    process.start()
    process.join(60)
    assert process.exitcode == 0, process.exitcode
"""

END = """
    near.sendall(b"BBBB")
    assert far.recv(64) == b"BBBB"
    far.sendall(b"CCCC")
    assert near.recv(64) == b"CCCC"
    here.connect(("10.7.0.2", 80), timeout=60).close()
    file.close()
    near.close()
    assert far.recv(64) == b""
    print("unharmed")
"""


def run(fork: str) -> None:
    """Runs a program that forks. Later versions of Python warn of forks beside threads."""
    program = "".join(map(textwrap.dedent, (BEGIN, fork, END)))
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", program]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=2 * LONG)
    assert (ended.stdout, ended.stderr, ended.returncode) == ("unharmed\n", "", 0)


@pytest.mark.parametrize("act", ACTS)
def test_a_forked_child_does_nothing_to_its_parents_connections(act: str) -> None:
    lines = textwrap.dedent(ACTS[act]).strip() or "pass"
    run(FORK.replace("{act}", textwrap.indent(lines, " " * 8).strip()))


def test_a_lock_that_is_held_at_the_fork_holds_up_no_child() -> None:
    run(HELD)


@pytest.mark.parametrize("timeout", ["None", "2"])
def test_a_call_that_waits_while_a_signals_handler_forks_is_an_error_in_the_child(timeout: str) -> None:
    run(HANDLER.replace("{timeout}", timeout))


def test_a_process_of_multiprocessing_has_no_network_of_its_parent() -> None:
    run(PROCESS)
