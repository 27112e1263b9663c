-- policy.lua: what own_queue.py asks about.
local policy = require "mulligan.policy"

local bus = policy.bus()
bus:on("ValidationError"):dead_letter("unreadable")
bus:on("Duplicate"):discard("sent before")
bus:on("ConnectionError"):retry(2, "10ms"):then_redeliver { "20ms", "40ms" }
bus:default():dead_letter()
