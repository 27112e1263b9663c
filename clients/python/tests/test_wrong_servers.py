"""Servers that are slow, wrong or gone: a clear error each time, and never a wait without end."""
import asyncio
import random
import threading
import unittest

import msgpack

from mulligan import AnswerTimeout, AsyncPolicy, ConnectionLost, MulliganError, Policy, ProtocolError
from tests.servers import Peer, serving

VERDICT = {
    "action": "retry", "delay_ms": 1, "queue": None, "reason": None, "note": None, "tier": "retry", "step": 1, "of": 3,
    "rule": None, "fallback": None, "generation": "g",
}


def ask(path, timeout=30.0):
    with Policy(path, timeout=timeout) as policy:
        return policy.decide({"type": "E"})


def ask_async(path, timeout=30.0):
    async def run():
        async with AsyncPolicy(path, timeout=timeout) as policy:
            return await policy.decide({"type": "E"})

    return asyncio.run(run())


def until_gone(peer: Peer) -> None:
    while peer.read() is not None:
        pass


class WrongServers(unittest.TestCase):
    def both(self, kind, words, *scripts, timeout=30.0):
        for way in (ask, ask_async):
            with self.subTest(way=way.__name__), serving(*scripts) as path:
                with self.assertRaisesRegex(kind, words):
                    way(path, timeout)

    def test_nobody_listens(self):
        for way in (ask, ask_async):
            with self.assertRaisesRegex(ConnectionLost, "^/nowhere/s: No such file or directory$"):
                way("/nowhere/s")

    def test_another_version(self):
        def refuse(peer):
            number = peer.read()[1]
            peer.send(1, number, {"type": "ProtocolError", "message": "version must be 2", "versions": [2]}, None)

        self.both(ProtocolError, "^version must be 2$", refuse)
        with serving(refuse) as path:
            try:
                ask(path)
            except ProtocolError as error:
                self.assertEqual((2,), error.versions)
        self.both(ProtocolError, "isn't one of this protocol", lambda peer: peer.greet(version=7))

    def test_what_is_no_message(self):
        def garbage(data):
            def script(peer):
                peer.greet()
                peer.read()
                peer.socket.sendall(data)
                until_gone(peer)

            return script

        self.both(ProtocolError, "isn't a message", garbage(b"\xc1"))
        self.both(ProtocolError, "isn't a message", garbage(b"HTTP/1.1 400"))
        self.both(ProtocolError, "isn't a message", garbage(b"\x94\x01\x01\xc0"[:1] + b"\x09\x09\x09\x09"))
        self.both(ProtocolError, "isn't a message", garbage(b"\x91" * 2000))
        self.both(ProtocolError, "isn't a message", garbage(b"\x94\x01\x01\xc0\xa2\xff\xff"))
        self.both(AnswerTimeout, "no answer to decide within 0.2 s", garbage(b"\xdb\xff\xff\xff\xff"), timeout=0.2)
        self.both(ProtocolError, "more than 1 MiB|isn't a message", garbage(b"\xda\xff\xff" + b"x" * (1 << 21)))
        self.both(ProtocolError, "isn't a message", garbage(b"\xdd\xff\xff\xff\xff"))

    def test_an_error_for_nobody_ends_it(self):
        def script(peer):
            peer.greet()
            peer.read()
            peer.send(1, None, {"type": "ProtocolError", "message": "too deep", "versions": [1]}, None)

        self.both(ProtocolError, "^too deep$", script)

    def test_a_verdict_that_is_none(self):
        def answer(result):
            def script(peer):
                peer.greet()
                peer.send(1, peer.read()[1], None, result)
                until_gone(peer)

            return script

        self.both(ProtocolError, "a map is due", answer(None))
        self.both(ProtocolError, "without the key", answer({"action": "retry"}))

    def test_cut_anywhere(self):
        whole = msgpack.packb([1, 1, None, VERDICT])
        for cut in range(0, len(whole), 7):
            def script(peer):
                peer.greet()
                peer.read()
                peer.socket.sendall(whole[:cut])

            self.both(ConnectionLost, "the server closed the connection|Connection reset", script)

    def test_byte_by_byte_is_well(self):
        def script(peer):
            peer.greet()
            for byte in msgpack.packb([1, peer.read()[1], None, VERDICT]):
                peer.socket.sendall(bytes((byte,)))
            until_gone(peer)

        for way in (ask, ask_async):
            with serving(script) as path:
                self.assertEqual(1, way(path).delay_ms)

    def test_no_answer(self):
        def silent(peer):
            peer.greet()
            until_gone(peer)

        self.both(AnswerTimeout, "no answer to decide within 0.2 s", silent, timeout=0.2)
        self.both(AnswerTimeout, "no answer to (hello|decide) within 0.2 s", until_gone, timeout=0.2)

    def test_a_server_that_never_reads(self):
        over = threading.Event()

        def deaf(peer):
            peer.greet()
            over.wait()

        with serving(deaf) as path, Policy(path, timeout=0.3) as policy:
            big = {"type": "E", "x": "x" * 900_000}
            with self.assertRaises(AnswerTimeout):
                policy.decide(big)
            over.set()

    def test_a_late_answer_is_nobodys(self):
        go = threading.Event()

        def late(peer):
            peer.greet()
            first = peer.read()
            go.wait()
            peer.send(1, first[1], None, VERDICT | {"delay_ms": 1})
            peer.send(1, peer.read()[1], None, VERDICT | {"delay_ms": 2})
            until_gone(peer)

        with serving(late) as path, Policy(path, timeout=0.2) as policy:
            with self.assertRaises(AnswerTimeout):
                policy.decide({"type": "E"})
            go.set()
            policy.timeout = 30
            self.assertEqual(2, policy.decide({"type": "E"}).delay_ms)

    def test_answers_in_another_order(self):
        def script(peer):
            peer.greet()
            asked = [peer.read() for _ in range(20)]
            for message in reversed(asked):
                peer.send(1, message[1], None, VERDICT | {"delay_ms": message[3][0]["attempt"]})
            until_gone(peer)

        got = {}
        with serving(script) as path, Policy(path) as policy:
            def run(number):
                got[number] = policy.decide({"type": "E"}, attempt=number).delay_ms

            threads = [threading.Thread(target=run, args=(number,)) for number in range(1, 21)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        self.assertEqual({number: number for number in range(1, 21)}, got)

    def test_pings_are_answered(self):
        answered = []

        def script(peer):
            peer.greet()
            message = peer.read()
            peer.send(0, 77, "ping", [{}])
            peer.send(0, 78, "other", [{}])
            peer.send(2, "other", [{}])
            answered.append(peer.read())
            answered.append(peer.read()[2]["type"])
            peer.send(1, message[1], None, VERDICT)
            until_gone(peer)

        for way in (ask, ask_async):
            answered.clear()
            with serving(script) as path:
                self.assertEqual(1, way(path).delay_ms)
            self.assertEqual([[1, 77, None, {}], "RequestError"], answered)

    def test_a_connection_that_ends_is_made_again_once(self):
        def drops(peer):
            peer.greet()
            peer.read()

        def works(peer):
            peer.greet()
            peer.send(1, peer.read()[1], None, VERDICT)
            until_gone(peer)

        for way in (ask, ask_async):
            with serving(drops, works) as path:
                self.assertEqual(1, way(path).delay_ms)
        self.both(ConnectionLost, "closed|reset", drops)

    def test_random_bytes(self):
        chance = random.Random(17)
        whole = msgpack.packb([1, 1, None, VERDICT])
        for _ in range(60):
            data = bytearray(whole)
            for _ in range(chance.randrange(1, 4)):
                data[chance.randrange(len(data))] = chance.randrange(256)

            def script(peer, data=bytes(data)):
                peer.greet()
                peer.read()
                peer.socket.sendall(data)

            for way in (ask, ask_async):
                with serving(script) as path:
                    try:
                        way(path, 5.0)
                    except MulliganError:
                        pass

    def test_close_ends_who_waits(self):
        asked = threading.Event()

        def silent(peer):
            peer.greet()
            peer.read()
            asked.set()
            until_gone(peer)

        with serving(silent) as path:
            policy = Policy(path, timeout=60)
            caught = []

            def run():
                try:
                    policy.decide({"type": "E"})
                except MulliganError as error:
                    caught.append(str(error))

            thread = threading.Thread(target=run)
            thread.start()
            asked.wait()
            policy.close()
            thread.join()
        self.assertRegex(caught[0], "this (client|policy)")


if __name__ == "__main__":
    unittest.main()
