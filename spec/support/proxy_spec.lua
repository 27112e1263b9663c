-- The proxy of the tests: each of its commands, seen from both of its ends.
local process = require "support.process"
local proxy = require "support.proxy"

-- peer.py has sockets by number, and does what it is told: a line in, a line out. Each call of it
-- waits until it is done, so that nothing here sleeps.
local PEER = [=[
import socket, struct, sys, time

sockets = {}
server = socket.create_server(("127.0.0.1", 0))

def connect(number, port):
    try:
        sockets[number] = socket.create_connection(("127.0.0.1", int(port)))
        return "ok"
    except ConnectionRefusedError:
        return "refused"

def accept(number):
    sockets[number] = server.accept()[0]
    return "ok"

def send(number, text):
    sockets[number].sendall(text.encode())
    return "ok"

def much(number, size):
    sockets[number].setblocking(False)
    sent = 0
    try:
        while sent < int(size):
            sent += sockets[number].send(b"x" * 65536)
    except BlockingIOError:
        pass
    sockets[number].setblocking(True)
    return str(sent)

def read(number, size):
    """What came, up to this many bytes; behind it how many reads that took, or how it ended."""
    text, reads, end = b"", 0, ""
    try:
        while len(text) < int(size):
            more = sockets[number].recv(int(size) - len(text))
            if not more:
                end = "end"
                break
            text, reads = text + more, reads + 1
    except ConnectionResetError:
        end = "reset"
    return "%s %s" % (text.decode(), end or reads)

def eat(number, size):
    """As read, but without the text."""
    return read(number, size).split(" ")[1]

def shut(number):
    sockets[number].shutdown(socket.SHUT_WR)
    return "ok"

def reset(number):
    sockets[number].setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    return close(number)

def close(number):
    sockets.pop(number).close()
    return "ok"

def now():
    return str(int(time.monotonic() * 1000))

print(server.getsockname()[1], flush=True)
for line in sys.stdin:
    words = line.split()
    print(globals()[words[0]](*words[1:]), flush=True)
]=]

describe("the proxy", function()
    local folder, peer, between

    -- ask has the peer do something, and gives its answer.
    local function ask(...)
        peer.commands:write(table.concat({ ... }, " "), "\n")
        return (assert(peer.answers:read("l"), peer.job.err()))
    end

    before_each(function()
        folder = process.folder { ["peer.py"] = PEER }
        assert(os.execute(("mkfifo %s %s"):format(folder:path("in"), folder:path("out"))))
        peer = { job = folder:start { "sh", "-c", "exec python3 peer.py <in >out" } }
        peer.commands = assert(io.open(folder:path("in"), "w"))
        peer.commands:setvbuf("line")
        peer.answers = assert(io.open(folder:path("out")))
        between = proxy.start(folder, tonumber(peer.answers:read("l")))
    end)

    after_each(function()
        between:stop()
        peer.commands:close()
        peer.answers:close()
        folder:remove()
    end)

    -- pair connects through the proxy: the client is number 1, the server's side 2.
    local function pair()
        assert.equal("ok", ask("connect", 1, between.port))
        assert.equal("ok", ask("accept", 2))
    end

    it("passes bytes both ways, and counts them", function()
        pair()
        ask("send", 1, "question")
        assert.equal("question 1", ask("read", 2, 8))
        ask("send", 2, "answers")
        assert.equal("answers 1", ask("read", 1, 7))
        between:await("down", 7)
        assert.same({ accepted = 1, open = 1, up = 8, down = 7, held = 0 }, between:count())
    end)

    it("passes on an end, with the other way open, and ends when both have", function()
        pair()
        ask("send", 1, "last")
        ask("shut", 1)
        assert.equal("last end", ask("read", 2, 100))
        ask("send", 2, "reply")
        assert.equal("reply 1", ask("read", 1, 5))
        ask("close", 2)
        assert.equal(" end", ask("read", 1, 1))
        between:await("open", 0)
    end)

    it("passes on a reset", function()
        pair()
        ask("reset", 2)
        assert.equal(" reset", ask("read", 1, 1))
        between:await("open", 0)
    end)

    it("resets a client whose server isn't there", function()
        local nowhere = proxy.start(folder, 1)
        assert.equal("ok", ask("connect", 1, nowhere.port))
        assert.equal(" reset", ask("read", 1, 1))
        nowhere:stop()
    end)

    it("delays", function()
        pair()
        between:tell("delay 200 down")
        local before = tonumber(ask("now"))
        ask("send", 2, "late")
        assert.equal("late 1", ask("read", 1, 4))
        assert.is_true(tonumber(ask("now")) - before >= 200)
        ask("send", 1, "up")
        assert.equal("up 1", ask("read", 2, 2))
    end)

    it("keeps the order where a delay is taken back", function()
        pair()
        between:tell("delay 100")
        ask("send", 2, "first,")
        between:await("held", 6)
        between:tell("delay 0")
        ask("send", 2, "second")
        assert.equal("first,second", ask("read", 1, 12):match("^[^ ]+"))
    end)

    it("slices", function()
        pair()
        between:tell("slice 1 up")
        ask("send", 1, ("x"):rep(300))
        local reads = tonumber(ask("eat", 2, 300))
        assert.is_true(reads > 1, reads)
        between:tell("slice 0")
        ask("send", 1, "whole")
        assert.equal("whole 1", ask("read", 2, 5))
    end)

    it("holds all bytes, and lets them go", function()
        pair()
        between:tell("stop down")
        ask("send", 2, "held")
        between:await("held", 4)
        ask("send", 1, "passed")
        assert.equal("passed 1", ask("read", 2, 6))
        assert.equal(0, between:count().down)
        between:tell("resume down")
        assert.equal("held 1", ask("read", 1, 4))
        assert.equal(0, between:count().held)
    end)

    it("has the sender wait where much is held", function()
        pair()
        between:tell("stop")
        local sent = tonumber(ask("much", 1, 100 << 20))
        assert.is_true(sent < 100 << 20)
        between:await("held", 65536)
        between:tell("resume")
        assert.is_truthy(tonumber(ask("eat", 2, sent)))
        assert.equal(sent, between:count().up)
    end)

    it("cuts", function()
        pair()
        ask("send", 1, "unread")
        ask("send", 2, "unread")
        between:await("down", 6)
        between:tell("cut")
        assert.equal("unread end", ask("read", 1, 100))
        between:await("open", 0)
        assert.equal("unread end", ask("read", 2, 100))
        pair() -- the next one lives
        ask("send", 1, "again")
        assert.equal("again 1", ask("read", 2, 5))
    end)

    it("resets", function()
        pair()
        between:tell("reset")
        assert.equal(" reset", ask("read", 1, 1))
        assert.equal(" reset", ask("read", 2, 1))
        between:await("open", 0)
    end)

    it("closes one half", function()
        pair()
        between:tell("half-close down")
        assert.equal(" end", ask("read", 1, 1))
        ask("send", 1, "still")
        assert.equal("still 1", ask("read", 2, 5))
        ask("send", 2, "lost")
        ask("close", 1)
        assert.equal(" end", ask("read", 2, 1))
        ask("close", 2)
        between:await("open", 0)
    end)

    it("refuses, and accepts again at the same port", function()
        pair()
        between:tell("refuse")
        assert.equal("refused", ask("connect", 3, between.port))
        ask("send", 1, "on")
        assert.equal("on 1", ask("read", 2, 2))
        between:tell("refuse")
        between:tell("accept")
        between:tell("accept")
        assert.equal("ok", ask("connect", 3, between.port))
        assert.equal("ok", ask("accept", 4))
        assert.equal(2, between:count().accepted)
    end)

    it("cuts after a number of bytes", function()
        for number = 1, 5 do
            between:tell(("cut-after %d down"):format(number))
            pair()
            ask("send", 2, "abcdefgh")
            assert.equal(("abcdefgh"):sub(1, number) .. " end", ask("read", 1, 100))
            between:await("open", 0)
            assert.equal(number * (number + 1) // 2, between:count().down)
            ask("close", 1)
            ask("close", 2)
        end
        pair() -- each time it did so once
        ask("send", 2, "abcdefgh")
        assert.equal("abcdefgh 1", ask("read", 1, 8))
    end)

    it("resets after a number of bytes, and counts those of one way only", function()
        between:tell("reset-after 3 up")
        pair()
        ask("send", 2, "abcdefgh")
        assert.equal("abcdefgh 1", ask("read", 1, 8))
        ask("send", 1, "abcdefgh")
        assert.equal(" reset", ask("read", 1, 100))
        between:await("open", 0)
        assert.equal(3, between:count().up)
    end)

    it("answers what it doesn't understand", function()
        for _, command in ipairs {
            "", "dance", "delay", "delay x", "delay 1 sideways", "delay 1 up 2", "slice up", "stop up now",
            "cut-after 3", "cut-after 0 up", "half-close", "half-close 1", "cut up", "await", "await love 1",
        } do
            assert.equal(("error: '%s' is no command, or lacks something"):format(command:match("^%S*")),
                between:ask(command))
        end
        assert.has_error(function()
            between:tell("dance")
        end)
    end)

    it("ends with its input", function()
        between.commands:close()
        process.await("its end", function()
            return between.job.state() == nil
        end)
        assert.equal(0, between.job.wait())
        between.stop = function() end
    end)
end)
