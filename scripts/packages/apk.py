"""Makes a package of apk's version 3 from a folder: apk.py FOLDER PACKAGE FIELD=VALUE…

A package begins with a database (apk-v3(5)). Its values are words of 32 bits: four bits of type, and the value or its
place. Objects and arrays are rows of words behind their number; an object's fields have the places that FIELDS and the
functions below give them. A block with the bytes of each file comes after the database. All owners are root, and times
are SOURCE_DATE_EPOCH, so that equal folders give equal bytes.
"""

import hashlib
import os
import struct
import sys
import zlib

INT, INT32, BLOBS, ARRAY, OBJECT = 0x1, 0x2, {"<B": 0x8, "<H": 0x9, "<I": 0xA}, 0xD, 0xE
# Kinds of blocks.
DATABASE, DATA = 0, 2
FIELDS = {"name": 1, "version": 2, "description": 4, "arch": 5, "license": 6, "origin": 7, "maintainer": 8}
UNIQUE, INSTALLED_SIZE, DEPENDS = 3, 12, 15
SCRIPTS = {"post-install": 3, "pre-deinstall": 4, "post-upgrade": 7}
UNIQUE_BYTES = 20


class Database:
    """The values, each distinct one once."""

    def __init__(self):
        # Two bytes of version 0, two of nothing, and the root's word.
        self.bytes = bytearray(8)
        self.places = {}

    def new(self, data, alignment):
        self.bytes += bytes(-len(self.bytes) % alignment)
        self.bytes += data
        return len(self.bytes) - len(data)

    def placed(self, kind, data, alignment):
        key = data, alignment
        if key not in self.places:
            self.places[key] = self.new(data, alignment)
        return kind << 28 | self.places[key]

    def blob(self, data):
        form = next(form for form in BLOBS if len(data) < 1 << 8 * struct.calcsize(form))
        return self.placed(BLOBS[form], struct.pack(form, len(data)) + data, struct.calcsize(form)) if data else 0

    def text(self, text):
        return self.blob(text.encode())

    def number(self, number):
        if number < 1 << 28:
            return INT << 28 | number
        return self.placed(INT32, struct.pack("<I", number), 4)

    def row(self, kind, words):
        return self.placed(kind, struct.pack(f"<{len(words) + 1}I", len(words) + 1, *words), 4) if words else 0

    def array(self, words):
        return self.row(ARRAY, words)

    def object(self, fields):
        """Of place → word; fields behind the last one are left out."""
        there = {place: word for place, word in fields.items() if word}
        return self.row(OBJECT, [there.get(place, 0) for place in range(1, max(there, default=0) + 1)])


def rights(database, path):
    root = database.text("root")
    return database.object({1: database.number(os.stat(path).st_mode & 0o7777), 2: root, 3: root})


def content(folder):
    """Folders and the files of each, by the bytes of their names: the root first."""
    folders = []
    for place, _, names in os.walk(folder):
        name = os.path.relpath(place, folder)
        folders.append(("" if name == "." else name, sorted(names, key=str.encode)))
    return sorted(folders, key=lambda entry: entry[0].encode())


def read(path):
    with open(path, "rb") as file:
        return file.read()


def a_file(database, path, time):
    data = read(path)
    digest = database.blob(hashlib.sha256(data).digest())
    name = database.text(os.path.basename(path))
    size, time = database.number(len(data)), database.number(time)
    return database.object({1: name, 2: rights(database, path), 3: size, 4: time, 5: digest})


def paths(database, folder, time):
    folders = []
    for name, names in content(folder):
        place = os.path.join(folder, name)
        files = database.array([a_file(database, os.path.join(place, file), time) for file in names])
        folders.append(database.object({1: database.text(name), 2: rights(database, place), 3: files}))
    return database.array(folders)


def information(database, fields, size):
    """Its word, and where the bytes of its unique id are."""
    unique = database.new(bytes([UNIQUE_BYTES]) + bytes(UNIQUE_BYTES), 1)
    needed = [database.object({1: database.text(name)}) for name in sorted(fields.pop("depends", "").split())]
    words = {FIELDS[name]: database.text(value) for name, value in fields.items()}
    words |= {UNIQUE: BLOBS["<B"] << 28 | unique, INSTALLED_SIZE: database.number(size)}
    words |= {DEPENDS: database.array(needed)}
    return database.object(words), unique + 1


def block(kind, data):
    return struct.pack("<I", kind << 30 | len(data) + 4) + data + bytes(-(len(data) + 4) % 8)


def package(folder, fields, time):
    database = Database()
    scripts = {SCRIPTS[name]: database.blob(read(fields.pop(name))) for name in list(fields) if name in SCRIPTS}
    files = [
        (path, file, read(os.path.join(folder, name, entry)))
        for path, (name, names) in enumerate(content(folder), 1)
        for file, entry in enumerate(names, 1)
    ]
    about, unique = information(database, fields, sum(len(data) for _, _, data in files))
    root = database.object({1: about, 2: paths(database, folder, time), 3: database.object(scripts)})
    struct.pack_into("<I", database.bytes, 4, root)
    # It is of the database in which it is still zero.
    digest = hashlib.sha256(database.bytes).digest()[:UNIQUE_BYTES]
    database.bytes[unique : unique + UNIQUE_BYTES] = digest
    data = [block(DATA, struct.pack("<II", path, file) + data) for path, file, data in files if data]
    return b"".join([b"ADB.pckg", block(DATABASE, bytes(database.bytes)), *data])


folder, out, *words = sys.argv[1:]
made = package(folder, dict(word.split("=", 1) for word in words), int(os.environ["SOURCE_DATE_EPOCH"]))
deflate = zlib.compressobj(9, zlib.DEFLATED, -15)
with open(out, "wb") as to:
    to.write(b"ADBd" + deflate.compress(made) + deflate.flush())
