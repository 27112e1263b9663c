-- examples.lua: compiles and runs the examples by the command in their first comment, as a reader would.
local process = require "support.process"

local examples = {}

local build = os.getenv("MULL_BUILD") or "build/dev"
build = build:sub(1, 1) == "/" and build or process.here .. "/" .. build
examples.build = build -- its folder

-- What the library under test was built with, if it isn't plain: a program of it needs the same.
examples.sanitizer = process.read(build .. "/CMakeCache.txt"):match("\nMULL_SANITIZE:STRING=([^\n]+)")

local function pkg_config()
    local sanitize = examples.sanitizer and "-fsanitize=" .. examples.sanitizer or ""
    return ([[
Name: mulligan
Description: the library under test
Version: 0
Cflags: -I%s/include %s
Libs: -L%s -lmulligan -Wl,-rpath,%s %s
]]):format(process.here, sanitize, build, build, sanitize)
end

-- command gives the command that stands, indented, in the first comment of a text.
function examples.command(text)
    local comment = text:match("^/%*.-%*/") or text:match('^""".-"""') or ""
    local lines = {}
    for line in comment:gmatch("\n %*   ([^\n]+)") do
        lines[#lines + 1] = line
    end
    for line in comment:gmatch("\n    ([^\n]+)") do
        lines[#lines + 1] = line
    end
    return assert(lines[1], "no command in the first comment") and table.concat(lines, "\n")
end

-- run runs the command of examples/NAME among copies of all examples and of `files`: { code =, out =, err = }.
function examples.run(name, files)
    local folder = process.folder()
    assert(os.execute(("cp -R examples/. '%s'"):format(folder.root)))
    for file, text in pairs(files or {}) do
        folder:write(file, text)
    end
    folder:write("mulligan.pc", pkg_config())
    local result = folder:run({ "sh", "-c", examples.command(folder:read(name)) },
        { env = { PKG_CONFIG_PATH = folder.root, LD_LIBRARY_PATH = build } })
    folder:remove()
    return result
end

-- counts runs an example that prints what became of its messages, a word and a number a line: a table of these.
function examples.counts(name)
    local ran = examples.run(name)
    assert(ran.code == 0 and ran.err == "", ran.err)
    local sum = {}
    for what, n in ran.out:gmatch("([%a-]+) (%d+)\n") do
        sum[what] = tonumber(n)
    end
    return sum, ran.out
end

return examples
