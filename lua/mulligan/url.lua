-- url.lua: URLs of transports, for commands.

local text = require "mulligan.policy.text"

local url = {}

-- mask hides the user part of a URL, by the rule of base/redact.h: what is shown never holds a password. One may
-- have a "/" or an "@" in it.
function url.mask(words)
    if words:find("^sqlite:") and not words:find("^sqlite://") then
        return words
    end
    local nowhere = #words + 1
    local at = math.min(words:find(":", 1, true) or nowhere, words:find("//", 1, true) or nowhere)
    return words:sub(1, at - 1) .. words:sub(at):gsub("^(:?/*).*@", "%1***@")
end

-- show is text.show for what may be a URL, also one in the wrong place or with a slip in its scheme.
function url.show(value)
    return text.show(type(value) == "string" and url.mask(value) or value)
end

function url.is_url(words)
    return words:find("^%a[%w+.-]*:") ~= nil
end

return url
