-- url.lua: URLs of transports, for commands.

local text = require "mulligan.policy.text"

local url = {}

-- mask hides the user part: what is shown never holds a password. One may have a "/" or an "@" in it.
function url.mask(words)
    return (words:gsub("//.*@", "//***@"))
end

-- show is text.show for what may be a URL, also one in the wrong place or with a slip in its scheme.
function url.show(value)
    return text.show(type(value) == "string" and url.mask(value) or value)
end

function url.is_url(words)
    return words:find("^%a[%w+.-]*:") ~= nil
end

return url
