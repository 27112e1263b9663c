"""Servers that aren't mulligan: each does with a connection what a test says."""
from __future__ import annotations

import contextlib
import os
import socket
import tempfile
import threading
from typing import Callable, Iterator

import msgpack

HELLO = {"version": 1, "max_frame": 1 << 20, "ping_ms": 10000, "lost_ms": 30000, "consumers": [], "generation": "g"}


class Peer:
    """A connection, as the server sees it."""

    def __init__(self, connection: socket.socket) -> None:
        self.socket = connection
        self.unpacker = msgpack.Unpacker()

    def read(self) -> list | None:
        """The next message; None: the client is gone."""
        while True:
            try:
                return self.unpacker.unpack()
            except msgpack.OutOfData:
                data = self.socket.recv(1 << 16)
                if not data:
                    return None
                self.unpacker.feed(data)

    def send(self, *message: object) -> None:
        self.socket.sendall(msgpack.packb(list(message)))

    def greet(self, **other: object) -> None:
        number = self.read()[1]
        self.send(1, number, None, HELLO | other)


@contextlib.contextmanager
def serving(*scripts: Callable[[Peer], None]) -> Iterator[str]:
    """Gives a path where each connection after the other is played a script, the last one again and again."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "s")
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(path)
        listener.listen(64)
        connections: list[socket.socket] = []

        def play(script: Callable[[Peer], None], connection: socket.socket) -> None:
            with contextlib.suppress(OSError), connection:
                script(Peer(connection))

        def accept() -> None:
            number = 0
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                connections.append(connection)
                script = scripts[min(number, len(scripts) - 1)]
                number += 1
                threading.Thread(target=play, args=(script, connection), daemon=True).start()

        thread = threading.Thread(target=accept, daemon=True)
        thread.start()
        try:
            yield path
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            listener.close()
            thread.join()
            for connection in connections:
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)
