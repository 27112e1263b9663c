-- decide.lua: a program that has a queue of its own, and asks a policy what becomes of the mails that
-- it couldn't send. Its time is a number, so it runs a day of redeliveries at once. With Lua's path to
-- the module:
--
--   lua5.4 examples/decide.lua

local mulligan = require "mulligan"

local policy <close> = assert(mulligan.load_text([[
local policy = require "mulligan.policy"
policy.errors { MailboxFull = "SmtpError", Busy = "SmtpError" }

local bus = policy.bus()
bus:on("SmtpError", { status = policy.between(500, 599) }):dead_letter("returned")
bus:on("Busy"):retry(2, "1s", "constant"):then_redeliver()
bus:on("MailboxFull"):redeliver { "1h", "6h", "1d" }
bus:on("Duplicate"):discard("sent before")
]], { name = "mails.lua" }))

-- ---- The program's own: a queue, and what sends ------------------------------------------------

local now_ms, waiting, put_aside = 0, {}, {}

local function put(mail, delay_ms)
    mail.due_ms = now_ms + delay_ms
    table.insert(waiting, mail)
    table.sort(waiting, function(a, b)
        return a.due_ms < b.due_ms or a.due_ms == b.due_ms and a.id < b.id
    end)
end

-- What goes wrong with whom, and when it doesn't any more.
local function send(mail)
    if mail.to == "full" and now_ms < 5 * 3600 * 1000 then
        mulligan.error { type = "MailboxFull", message = "over quota", status = 452 }
    elseif mail.to == "busy" then
        mulligan.error { type = "Busy", status = 421 }
    elseif mail.to == "nobody" then
        mulligan.error { type = "SmtpError", message = "no such user", status = 550 }
    elseif mail.to == "again" then
        mulligan.error { type = "Duplicate" }
    elseif mail.to == "crash" then
        error "attempt to send nothing" -- an error without a type is an "Error"
    end
end

local function say(mail, words, ...)
    print(("%3d:%02d:%02d  %s  %s"):format(now_ms // 3600000, now_ms // 60000 % 60, now_ms // 1000 % 60, mail.id,
        words:format(...)))
end

-- ---- What a failure comes to -------------------------------------------------------------------

local function judge(mail, raised)
    mail.first_failure_ms = mail.first_failure_ms or now_ms
    mail.calls = mail.calls + 1
    local verdict = assert(policy:decide({
        error = type(raised) == "table" and raised or { type = "Error", message = tostring(raised) },
        consumer = "Mailer",
        attempt = mail.attempt,
        redeliveries = mail.redeliveries,
        calls = mail.calls,
        age_ms = now_ms - mail.first_failure_ms,
        message = { id = mail.id },
    }, { no_jitter = true })) -- so that what is printed is easy to follow

    if verdict.action == "retry" then
        mail.attempt = mail.attempt + 1
        put(mail, verdict.delay_ms)
        say(mail, "%s: once more in %d ms", verdict.rule.type, verdict.delay_ms)
    elseif verdict.action == "redeliver" then
        mail.attempt, mail.redeliveries = 1, mail.redeliveries + 1
        put(mail, verdict.delay_ms)
        say(mail, "%s: later, in %d min", verdict.rule.type, verdict.delay_ms // 60000)
    elseif verdict.action == "dead_letter" then
        table.insert(put_aside, verdict.queue .. ": " .. mail.id)
        say(mail, "put aside in %s (%s)", verdict.queue, verdict.reason)
    else
        say(mail, "dropped: %s", verdict.note)
    end
end

for number, to in ipairs { "anybody", "full", "busy", "nobody", "again", "crash" } do
    put({ id = "mail-" .. number, to = to, attempt = 1, redeliveries = 0, calls = 0 }, 0)
end

while #waiting > 0 do
    local mail = table.remove(waiting, 1)
    now_ms = math.max(now_ms, mail.due_ms)
    local sent, raised = pcall(send, mail)
    if sent then
        say(mail, "sent")
    else
        judge(mail, raised)
    end
end

print("put aside: " .. table.concat(put_aside, ", "))
