-- man.lua: in docs/man/mulligan*.1.scd, the sections that say what --help says: NAME, SYNOPSIS,
-- OPTIONS and COMMANDS. The others are written by hand.

-- What means something to scdoc.
local function plain(words)
    return (words:gsub("[\\*_`#]", "\\%0"))
end

local function read(path)
    local file = assert(io.open(path, "rb"))
    local bytes = file:read("a")
    file:close()
    return bytes
end

-- put replaces a section, which must be there.
local function put(page, path, name, text)
    local head = ("\n# %s\n"):format(name)
    local _, first = page:find(head, 1, true)
    assert(first, ("%s: there is no section %s"):format(path, name))
    local last = page:find("\n# ", first, true) or #page
    return page:sub(1, first) .. "\n" .. text .. page:sub(last)
end

-- A usage with what stands for something else underlined: all but the command and its options.
local function usage_of(command)
    local usage = command.usage:gsub("^%S+ ?", ""):gsub("[%w.-]+", function(word)
        if word:find("^%.+$") then
            return word
        end
        return (word:find("^%-%-") and "*%s*" or "_%s_"):format(word)
    end)
    return ("*mulligan %s* %s\n"):format(command.name, usage)
end

-- Choices are typed as they stand, other values are names of what is.
local function value_of(value)
    local mark = value:find("|", 1, true) and "*" or "_"
    return (value:gsub("[^|]+", function(word)
        return mark .. plain(word) .. mark
    end))
end

local function options_of(command)
    local items = {}
    for number, option in ipairs(command.options) do
        local value = option[2] and " " .. value_of(option[2]) or ""
        items[number] = ("*%s*%s\n\t%s\n"):format(option[1], value, plain(option.help))
    end
    return table.concat(items, "\n")
end

return function(commands)
    local files, rows = {}, {}
    for number, command in ipairs(commands) do
        local path = ("docs/man/mulligan-%s.1.scd"):format(command.name)
        local page = read(path)
        page = put(page, path, "NAME", ("mulligan-%s - %s\n"):format(command.name, plain(command.summary)))
        page = put(page, path, "SYNOPSIS", usage_of(command))
        page = put(page, path, "OPTIONS", options_of(command))
        files[number] = { path = path, text = page }
        rows[number] = ("*mulligan-%s*(1)\n\t%s\n"):format(command.name, plain(command.summary))
    end
    local path = "docs/man/mulligan.1.scd"
    files[#files + 1] = { path = path, text = put(read(path), path, "COMMANDS", table.concat(rows, "\n")) }
    return files
end
