"""Checksums in the files of a trial: the last member of an object, `sum`, is the SHA-256 of the text before it.

It finds changes by a disk or an editor. It is no signature: an attacker can compute it anew.
"""

from __future__ import annotations

import hashlib

_NAME = '"sum"'

#: The remedy for a file that is not as it was written.
AGAIN = "put the file back, or delete it and run the trial again with --resume"


def digest(text: str) -> str:
    """The SHA-256 of a text in hexadecimal digits."""
    return hashlib.sha256(text.encode()).hexdigest()


def broken(text: str) -> str | None:
    """Why an object is not the written one; none if it is."""
    if not text.rstrip().endswith("}"):
        return "it ends in the middle: expected a whole object that ends with its checksum (`sum`)"
    before, name, tail = text.rpartition(_NAME)
    body = before.rstrip()
    if not name or not body.endswith(","):
        return "it has no checksum (`sum`): expected one at the end of the object"
    if "".join(tail.split()) != f':"{digest(body[:-1])}"}}':
        return "it was changed since it was written: its checksum (`sum`) is another"
    return None
