-- url.lua: URLs of transports, for commands.

local url = {}

-- mask hides the user part: what is shown never holds a password.
function url.mask(text)
    return (text:gsub("//[^/@]*@", "//***@"))
end

function url.is_url(text)
    return text:find("^%a[%w+.-]*:") ~= nil
end

return url
