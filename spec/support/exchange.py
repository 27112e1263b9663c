"""exchange.py: speaks to a Unix socket by a script of lines on stdin, and prints a line for each that asks.
With "-", a script's path and another one it is a worker: the socket is its stdin, and the path gets what it would print.

    > HEX          sends bytes                        prints nothing
    >> HEX         begins to send, and goes on        prints nothing
    <              reads a message of MessagePack     prints its bytes as hex, or "closed"
    <<             reads to the end                   prints all of it as hex
    ! COMMAND      runs a command of the shell        prints nothing
    open           closes the connection, and opens another
    shut           says that nothing more is sent

It ends in 1 where a line takes longer than 30 s.
"""
import os
import signal
import socket
import subprocess
import sys
import threading

# How many bytes have the length, and how many follow, from 0xc0 to 0xdf.
LENGTHS = [0, 0, 0, 0, 1, 2, 4, 1, 2, 4] + [0] * 15 + [1, 2, 4, 2, 4, 2, 4]
FOLLOW = [0] * 7 + [1, 1, 1, 4, 8, 1, 2, 4, 8, 1, 2, 4, 8, 2, 3, 5, 9, 17] + [0] * 7


class Closed(Exception):
    pass


class Connection:
    def __init__(self, path):
        if path == "-":
            self.socket = socket.socket(fileno=os.dup(0))
        else:
            self.socket = socket.socket(socket.AF_UNIX)
            self.socket.connect(path)
        self.bytes = b""

    def send(self, data):
        try:
            self.socket.sendall(data)
        except (BrokenPipeError, ConnectionResetError):
            pass

    def need(self, size):
        while len(self.bytes) < size:
            try:
                more = self.socket.recv(1 << 16)
            except ConnectionResetError:
                more = b""
            if not more:
                raise Closed
            self.bytes += more

    def end_of(self, at):
        """Where the value that begins at a byte ends."""
        self.need(at + 1)
        byte = self.bytes[at]
        if byte < 0x80 or byte >= 0xE0:
            return at + 1
        if byte < 0x90:
            return self.end_of_items(at + 1, 2 * (byte & 15))
        if byte < 0xA0:
            return self.end_of_items(at + 1, byte & 15)
        if byte < 0xC0:
            self.need(at + 1 + (byte & 31))
            return at + 1 + (byte & 31)
        length = LENGTHS[byte - 0xC0]
        self.need(at + 1 + length)
        count = int.from_bytes(self.bytes[at + 1:at + 1 + length], "big") if length else 0
        if byte >= 0xDC:
            return self.end_of_items(at + 1 + length, count * (1 if byte < 0xDE else 2))
        end = at + 1 + length + count + FOLLOW[byte - 0xC0]
        self.need(end)
        return end

    def end_of_items(self, at, count):
        for _ in range(count):
            at = self.end_of(at)
        return at

    def message(self):
        try:
            end = self.end_of(0)
        except Closed:
            return "closed"
        taken, self.bytes = self.bytes[:end], self.bytes[end:]
        return taken.hex()

    def rest(self):
        try:
            self.need(1 << 40)
        except Closed:
            return self.bytes.hex()


def main(path, script, out):
    connection = Connection(path)
    for line in script:
        signal.alarm(30)
        word, _, rest = line.rstrip("\n").partition(" ")
        if word == ">":
            connection.send(bytes.fromhex(rest))
        elif word == ">>":
            threading.Thread(target=connection.send, args=(bytes.fromhex(rest),), daemon=True).start()
        elif word == "<":
            print(connection.message(), file=out, flush=True)
        elif word == "<<":
            print(connection.rest(), file=out, flush=True)
        elif word == "!":
            subprocess.run(rest, shell=True, check=True)
        elif word == "open":
            connection.socket.close()
            connection = Connection(path)
        elif word == "shut":
            connection.socket.shutdown(socket.SHUT_WR)
        else:
            sys.exit(f"no such word: {word}")
    out.flush()
    if path == "-":
        while connection.socket.recv(1 << 16):
            pass
    os._exit(0)


if sys.argv[1] == "-":
    main("-", open(sys.argv[2]), open(sys.argv[3], "a"))
else:
    main(sys.argv[1], sys.stdin, sys.stdout)
