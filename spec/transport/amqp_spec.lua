-- amqp: on the real server does what every transport does. Each case has a virtual host of its own, behind a
-- proxy that cuts its connections.
local conformance = require "transport.conformance"
local proxy = require "support.proxy"
local rabbitmq = require "support.rabbitmq"

local missing = rabbitmq.missing()
if missing then
    describe("transport amqp:", function()
        it("passes the conformance suite", function()
            pending("transport amqp: " .. missing)
        end)
    end)
    return
end

-- ---- The server --------------------------------------------------------------------------------

local BATCH = 40 -- virtual hosts are made so many at a time, since each call of rabbitmqctl takes a second

local HOSTS = [[
lists:foreach(fun(N) ->
    Name = list_to_binary("%s" ++ integer_to_list(N)),
    rabbit_vhost:add(Name, <<"spec">>),
    rabbit_auth_backend_internal:set_permissions(<<"guest">>, Name, <<".*">>, <<".*">>, <<".*">>, <<"spec">>)
end, lists:seq(%d, %d)), ok.]]

local server, wire, short_server
local hosts = 0

local function make_hosts(on, name, first, last)
    on:ctl { "eval", HOSTS:format(name, first, last) }
end

-- start starts the server, once it is needed.
local function start()
    if not server then
        server = assert(rabbitmq.start())
        wire = proxy.start(server.folder, server.port)
    end
end

-- One that takes a message back after 2 s, and looks every 0.2 s.
local function short_url()
    if not short_server then
        short_server = assert(rabbitmq.start {
            advanced = "[{rabbit, [{consumer_timeout, 2000}, {channel_tick_interval, 200}]}].\n" })
        make_hosts(short_server, "short", 1, BATCH)
    end
    return ("%s/short%d?claim_timeout=2s"):format(short_server.url, (hosts - 1) % BATCH + 1)
end

-- publish has the server itself put a message into a queue, with these properties, as Erlang has them.
local function publish(host, queue, properties)
    server:ctl { "eval", ('rabbit_basic:publish(rabbit_misc:r(<<"%s">>, exchange, <<"">>), <<"%s">>, %s, '
        .. '<<"from outside">>).'):format(host, queue, properties) }
end

-- fill has a queue that takes no message: a classic one, where a limit of 0 holds at once.
local function fill(host, queue)
    server:ctl { "eval", ('rabbit_amqqueue:declare(rabbit_misc:r(<<"%s">>, queue, <<"%s">>), true, false, [], none, '
        .. '<<"spec">>), ok.'):format(host, queue) }
    server:ctl { "set_policy", "full", "^" .. queue .. "$", '{"max-length":0,"overflow":"reject-publish"}', "--vhost",
        host, "--apply-to", "queues" }
end

local function place()
    start()
    hosts = hosts + 1
    if hosts % BATCH == 1 then
        make_hosts(server, "host", hosts, hosts + BATCH - 1)
    end
    local host = "host" .. hosts
    local url = ("amqp://guest:guest@127.0.0.1:%d/%s"):format(wire.port, host)
    return {
        url = url,
        undeclared_url = url .. "?declare=no",
        claim_timeout_url = short_url,
        cut = function()
            wire:tell "refuse"
            wire:tell "reset"
        end,
        come_back = function()
            wire:tell "accept"
        end,
        restart = function()
            -- Which log a new quorum queue has is on the disk 0.5 s after it was made; a server that is killed before
            -- that has the queue, and none of its messages, confirmed or not.
            os.execute "sleep 1"
            server:kill()
            server:again()
        end,
        delete_queue = function(queue)
            server:ctl { "delete_queue", queue, "--vhost", host }
        end,
        full = function(queue)
            fill(host, queue)
        end,
        room = function()
            server:ctl { "clear_policy", "full", "--vhost", host }
        end,
        foreign = function(queue)
            publish(host, queue, "[]")
        end,
        malformed = function(_, queue)
            publish(host, queue, "[{message_id, <<255, 254>>}]")
        end,
        remove = function()
            wire:tell "accept"
        end,
    }
end

teardown(function()
    if server then
        server:remove() -- and the proxy
    end
    if short_server then
        short_server:remove()
    end
end)

-- ---- The suite ---------------------------------------------------------------------------------

conformance.of("amqp", {
    url = "amqp://localhost",
    real_time = true,
    durable = true,
    processes = true,
    claim_timeout = true,
    cut = true,
    restart = true,
    delete_queue = true,
    full = true,
    foreign = true,
    malformed = true,
    undeclared = true,
    skip = function(why)
        pending(why)
    end,
    program = function()
        start()
        make_hosts(server, "c", 1, BATCH)
        return { "--real-time", "--tail", server.url .. "/c{}" }
    end,
}, place)
