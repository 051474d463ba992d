#!/usr/bin/env python3
"""Counts what a segment of bulk takes of ours and of smoltcp: instructions, lines missed, mispredicted branches.

Usage: counts.py BENCH

BENCH is the program that `cargo bench --bench host --no-run` names. Each stack runs under Valgrind, in a process of its
own, against the kernel's TCP in a network namespace that this script makes; it needs root. A row is the difference of a
transfer and of a transfer twice as long, for each 1,448 bytes. The kernel joins segments differently from run to run:
two runs of a row differ by up to a third in instructions.
"""

import ctypes
import os
import socket
import struct
import subprocess
import sys
import tempfile
import threading

PORT = 80
SEGMENT = 1448
CACHES = ["--I1=32768,8,64", "--D1=32768,8,64", "--LL=8388608,16,64"]
# Buffers grow in the first megabytes of a connection.
SIZES = {1: 24_000_000, 16: 160_000_000}


def refuse_auxv():
    """Refuses prctl(PR_GET_AUXV), which tells a program of a vDSO that Valgrind has unmapped."""
    libc = ctypes.CDLL(None, use_errno=True)
    steps = [
        (0x20, 0, 0, 0),  # The number of the call: x86-64's prctl is 157.
        (0x15, 0, 3, 157),
        (0x20, 0, 0, 16),  # Its first argument.
        (0x15, 0, 1, 0x41555856),
        (0x06, 0, 0, 0x00050016),  # EINVAL
        (0x06, 0, 0, 0x7FFF0000),
    ]
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in steps))

    class Filter(ctypes.Structure):
        _fields_ = [("steps", ctypes.c_ushort), ("code", ctypes.c_void_p)]

    libc.prctl(38, 1, 0, 0, 0)
    if libc.prctl(22, 2, ctypes.byref(Filter(len(steps), ctypes.addressof(code))), 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "no seccomp filter")


def drain(stream):
    with stream:
        while stream.recv(1 << 18):
            pass


def send(bytes_each):
    with socket.create_connection(("10.7.0.1", PORT)) as stream:
        chunk, left = bytes(1 << 18), bytes_each
        while left > 0:
            stream.sendall(chunk[: min(left, len(chunk))])
            left -= len(chunk)
        stream.shutdown(socket.SHUT_WR)
        stream.recv(1)


def count(bench, stack, mode, link, connections, size):
    """The counts of one transfer, by Valgrind's names of events."""
    each = size // connections
    with tempfile.NamedTemporaryFile() as out, socket.create_server(("0.0.0.0", 0), backlog=64) as listener:
        port = listener.getsockname()[1] if mode == "send" else PORT
        valgrind = ["valgrind", "--tool=cachegrind", "--cache-sim=yes", "--branch-sim=yes", *CACHES]
        task = [bench, "--peer", stack, mode, link, str(connections), str(each), str(port)]
        child = subprocess.Popen(
            [*valgrind, f"--cachegrind-out-file={out.name}", *task],
            preexec_fn=refuse_auxv,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        if child.stdout.readline().strip() != b"ready":
            sys.exit(f"{stack}: it did not start under Valgrind")
        child.stdin.write(b"go\n")
        child.stdin.flush()
        ends = []
        for _ in range(connections):
            target, argument = (drain, listener.accept()[0]) if mode == "send" else (send, each)
            ends.append(threading.Thread(target=target, args=(argument,)))
            ends[-1].start()
        for end in ends:
            end.join()
        child.communicate(timeout=120)
        lines = dict(line.split(":", 1) for line in open(out.name) if line.startswith(("events:", "summary:")))
        return dict(zip(lines["events"].split(), map(int, lines["summary"].split())))


def row(bench, stack, mode, link, connections):
    size = SIZES[connections]
    once, twice = (count(bench, stack, mode, link, connections, times * size) for times in (1, 2))

    def of(*events):
        return sum(twice[event] - once[event] for event in events) / size * SEGMENT

    return f"{of('Ir'):.0f} | {of('I1mr'):.1f} | {of('D1mr', 'D1mw'):.0f} | {of('Bcm', 'Bim'):.1f}"


def main():
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    name = f"hopcounts-{os.getpid()}"
    subprocess.run(["ip", "netns", "add", name], check=True)
    try:
        with open(f"/run/netns/{name}") as namespace:
            if ctypes.CDLL(None, use_errno=True).setns(namespace.fileno(), 0) != 0:
                sys.exit("it needs root, to enter a network namespace")
        subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
        print("| case | stack | instructions | lines of code missed | lines of data missed | mispredicted |")
        print("|---|---|---|---|---|---|")
        for link, connections in [(link, n) for link in ("plain", "offload") for n in (1, 16)]:
            for mode, stack in [(mode, stack) for mode in ("send", "receive") for stack in ("ours", "smoltcp")]:
                cells = row(sys.argv[1], stack, mode, link, connections)
                print(f"| {mode}, {link}, {connections} | {stack} | {cells} |", flush=True)
    finally:
        subprocess.run(["ip", "netns", "del", name], check=True)


if __name__ == "__main__":
    main()
