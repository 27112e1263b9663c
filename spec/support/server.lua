-- server.lua: an HTTP server for specs, on a free port of 127.0.0.1, whose every path is a way to answer:
--
--   /echo           200, and as JSON what was asked: method, path, headers, body, and the connection's number
--   /keep           the same, and writes that to the file `kept`
--   /status/N       N; ?retry=TEXT: with Retry-After; ?body=TEXT: with that body; ?times=N: 200 from the N + 1st on
--   /redirect/PATH  302 to it, /loop to itself
--   /together/N     200 to N requests, once all of them are there
--   /gone           200, as soon as the file `go` is there
--   /never          nothing, but holds the connection
--   /drip           a head, and then nothing more of its body
--   /close          closes the connection; /reset resets it; /half closes it in the midst of the body
--   /garbage        what is no HTTP
--   /flood          100 MB; /head a head that never ends

local process = require "support.process"

local server = {}

local PROGRAM = [=[
import json, os, socket, struct, sys, threading, time, urllib.parse

listener = socket.socket()
listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
listener.bind(("127.0.0.1", 0))
listener.listen(1024)
state = threading.Condition()
counts = {}

def answer(status, body=b"", headers=(), length=None):
    lines = ["HTTP/1.1 %d Whatever" % status, "Content-Length: %d" % (len(body) if length is None else length)]
    return ("\r\n".join(lines + list(headers)) + "\r\n\r\n").encode() + body

def read_request(stream):
    line = stream.readline()
    if not line:
        return None
    method, path, _ = line.decode("latin-1").split(" ")
    headers = {}
    while True:
        line = stream.readline().decode("latin-1").strip()
        if not line:
            break
        name, value = line.split(":", 1)
        headers[name.lower()] = value.strip()
    body = stream.read(int(headers.get("content-length", "0")))
    return method, path, headers, body

def count(path):
    with state:
        counts[path] = counts.get(path, 0) + 1
        state.notify_all()
        return counts[path]

def respond(connection, number, request):
    method, path, headers, body = request
    way, _, rest = path.partition("?")
    words = way.split("/")[1:]
    query = {name: values[0] for name, values in urllib.parse.parse_qs(rest).items()}
    seen = count(path)
    if words[0] in ("echo", "keep"):
        told = {"method": method, "path": path, "headers": headers, "body": body.decode("latin-1"), "number": number}
        if words[0] == "keep":
            with open("kept", "w") as file:
                json.dump(told, file)
        return answer(200, json.dumps(told).encode(), ["X-Twice: a", "x-twice:  b ", "X-Empty:"])
    if words[0] == "status":
        more = ["Retry-After: " + query["retry"]] if "retry" in query else []
        status = 200 if seen > int(query.get("times", "1000000")) else int(words[1])
        return answer(status, query.get("body", "").encode(), more)
    if words[0] == "redirect":
        return answer(302, b"moved", ["Location: /" + "/".join(words[1:])])
    if words[0] == "loop":
        return answer(302, b"", ["Location: /loop"])
    if words[0] == "together":
        with state:
            state.wait_for(lambda: counts[path] >= int(words[1]), 60)
            together = counts[path]
        return answer(200, b"%d" % together)
    if words[0] == "gone":
        while not os.path.exists("go"):
            time.sleep(0.01)
        return answer(200)
    if words[0] == "drip":
        connection.sendall(answer(200, b"a little", length=1000))
        return None
    if words[0] == "reset":
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    if words[0] in ("close", "reset"):
        connection.close()
        return b""
    if words[0] == "half":
        connection.sendall(answer(200, b"a little", length=1000))
        connection.shutdown(socket.SHUT_RDWR)
        return b""
    if words[0] == "garbage":
        connection.sendall(b"\x00\xff this is no HTTP\r\n\r\n" * 10)
        connection.shutdown(socket.SHUT_RDWR)
        return b""
    if words[0] == "flood":
        connection.sendall(answer(200, length=100000000))
        for _ in range(1000):
            connection.sendall(b"x" * 100000)
        return b""
    if words[0] == "head":
        connection.sendall(b"HTTP/1.1 200 Whatever\r\n")
        while True:
            connection.sendall(b"X-More: " + b"x" * 1000 + b"\r\n")
    return None # /never

def serve(connection, number):
    stream = connection.makefile("rb")
    try:
        while True:
            request = read_request(stream)
            if request is None:
                break
            bytes = respond(connection, number, request)
            if bytes is None:
                stream.read(1) # until the other side is gone
                break
            if bytes == b"":
                break
            connection.sendall(bytes)
    except OSError:
        pass
    stream.close()
    connection.close()

with open("port.new", "w") as file:
    file.write(str(listener.getsockname()[1]))
os.rename("port.new", "port")
number = 0
while True:
    connection, _ = listener.accept()
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    number += 1
    threading.Thread(target=serve, args=(connection, number), daemon=True).start()
]=]

-- start starts one in a folder of support.process, which ends it: its URL, without a slash at the end.
function server.start(folder)
    folder:write("server.py", PROGRAM)
    local job = folder:start { "python3", "server.py" }
    process.await("the server's port", function()
        return folder:read("port"), job.err()
    end)
    return "http://127.0.0.1:" .. folder:read("port"), job
end

return server
