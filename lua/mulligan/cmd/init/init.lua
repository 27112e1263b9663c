-- cmd/init: writes a policy to begin with, a spec for it, and what editors and luacheck need to
-- know of policies. All of it or nothing: the files are written in a folder of their own first.

local cli = require "mulligan.cli"
local folders = require("mulligan.program").folders
local files_for = require "mulligan.cmd.init.files"
local text = require "mulligan.policy.text"

local init = {}

local STAGE = ".mulligan-init"

-- A file of a folder, as people would name it.
local function in_folder(root, name)
    return root == "." and name or root .. "/" .. name
end

-- make makes a folder and those above it; nil and why where that fails.
local function make(path)
    local above = path:match("^(.*[^/])/+[^/]+/*$")
    if above and not folders.is_there(above) then
        local made, why = make(above)
        if not made then
            return nil, why
        end
    end
    return folders.make(path)
end

-- The number of a file in the stage, of one that is to come or of one that was replaced.
local function staged(root, number, suffix)
    return ("%s/%s/%d%s"):format(root, STAGE, number, suffix or "")
end

local function write(path, bytes)
    local file, why = io.open(path, "wb")
    if not file then
        return nil, why
    end
    local written, problem = file:write(bytes)
    local closed, late = file:close()
    return written and closed, problem or late
end

-- put puts a file in its place; with `force`, what was there goes to the stage first.
local function put(root, number, file, force)
    local path = in_folder(root, file.name)
    if folders.is_there(path .. "/.") then
        return nil, path .. ": this is a folder"
    elseif force and folders.is_there(path) then
        local kept, why = folders.put(path, staged(root, number, ".old"), true)
        if not kept then
            return nil, why
        end
    end
    return folders.put(staged(root, number), path, false)
end

-- take_back undoes what put did to the first files.
local function take_back(root, files, count)
    for number = count, 1, -1 do
        local path, old = in_folder(root, files[number].name), staged(root, number, ".old")
        if not folders.is_there(staged(root, number)) then
            os.remove(path)
        end
        if folders.is_there(old) then
            folders.put(old, path, true)
        end
    end
end

local function write_stage(root, files)
    for number, file in ipairs(files) do
        local inner = file.name:match("^(.*)/")
        local made, why = true, nil
        if inner then
            made, why = make(in_folder(root, inner))
        end
        if made then
            made, why = write(staged(root, number), file.text)
        end
        if not made then
            return nil, why
        end
    end
    return true
end

local function write_all(root, files, force)
    local well, why = write_stage(root, files)
    if not well then
        return nil, why
    end
    for number, file in ipairs(files) do
        well, why = put(root, number, file, force)
        if not well then
            take_back(root, files, number)
            return nil, why
        end
    end
    return true
end

local function clear_stage(root, files)
    for number in ipairs(files) do
        os.remove(staged(root, number))
        os.remove(staged(root, number, ".old"))
    end
    os.remove(root .. "/" .. STAGE)
end

local function there_already(root, files)
    local names = {}
    for _, file in ipairs(files) do
        names[#names + 1] = folders.is_there(in_folder(root, file.name)) and in_folder(root, file.name) or nil
    end
    return names
end

local function say_what_was_done(root, files)
    local lines = {}
    for _, file in ipairs(files) do
        lines[#lines + 1] = "wrote " .. text.clean(in_folder(root, file.name))
    end
    table.move({
        "",
        "next:",
        "  mulligan check " .. text.clean(in_folder(root, "policy.lua")),
        ("  mulligan explain %s --error TimeoutError"):format(text.clean(in_folder(root, "policy.lua"))),
        ("  %sbusted --lua=lua5.4 spec"):format(root == "." and "" or ("cd %s && "):format(text.clean(root))),
    }, 1, 5, #lines + 1, lines)
    cli.say(table.concat(lines, "\n") .. "\n")
end

function init.main(words)
    local root = words[1] or "."
    root = root:match("^(.*[^/])/+$") or root
    local files, has_types = files_for(folders.types())
    local names = there_already(root, files)
    if #names > 0 and not words.force then
        local one = #names == 1
        cli.complain("init: %s %s there already; --force replaces %s", text.list(names, "and"), one and "is" or "are",
            one and "it" or "them")
        return 1
    end
    local well, why = make(root .. "/" .. STAGE)
    if well then
        well, why = write_all(root, files, words.force)
        clear_stage(root, files)
    end
    if not well then
        cli.complain("init: %s", why)
        return 1
    end
    if not has_types then
        cli.complain("init: the types for editors aren't where this program was installed to; .luarc.json names none")
    end
    say_what_was_done(root, files)
    return 0
end

return init
