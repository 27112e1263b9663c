-- What is installed beside the program says what the program says: man pages and completions have the
-- commands, options and choices of --help, no more and no less. And the unit of systemd is one.
local installed = require "support.installed"
local process = require "support.process"
local shells = require "support.shells"

local place
local commands = {} -- in the order of --help: { name =, options = { { name =, choices = } } }

-- The options that a --help lists: "  --format text|json    for people …".
local function options_of(help)
    local options = {}
    for line in help:gmatch("\n  (%-%-[^\n]+)") do
        local name, value = line:match("^(%S+) ?(%S*)")
        options[#options + 1] = { name = name, choices = value:find("|") and value or nil }
    end
    options[#options + 1] = { name = "--help" }
    return options
end

local function sorted(words)
    table.sort(words)
    return words
end

local function split(choices)
    local words = {}
    for word in choices:gmatch("[^|]+") do
        words[#words + 1] = word
    end
    return sorted(words)
end

local function names_of(options)
    local names = {}
    for number, option in ipairs(options) do
        names[number] = option.name
    end
    return sorted(names)
end

setup(function()
    place = installed.new { ["some/a.lua"] = "", ["some/b.txt"] = "", ["some/inner/c.lua"] = "" }
    local help = place:sh("moved/bin/mulligan --help")
    for name in help:match("\n\n(  .-)\n\n"):gmatch("  (%l+) +[^\n]+") do
        commands[#commands + 1] = { name = name, options = options_of(place:sh(("moved/bin/mulligan %s --help")
            :format(name))) }
    end
    assert(#commands >= 7)
end)

teardown(function()
    place:remove()
end)

describe("an installed man page", function()
    -- A page without what only says how it looks.
    local function page(name)
        local text = place:sh("cat moved/share/man/" .. name)
        return (text:gsub("\\f[BIR]", ""):gsub("\\&", ""):gsub("\\(%p)", "%1"))
    end

    -- A section of it.
    local function section(name, head)
        return page(name):match(("\n%%.SH %s\n(.-)\n%%.SH"):format(head))
    end

    local function all_in(text, pattern)
        local found = {}
        for word in text:gmatch(pattern) do
            found[#found + 1] = word
        end
        return sorted(found)
    end

    it("is there for each command, and lists its options", function()
        for _, command in ipairs(commands) do
            local options = section(("man1/mulligan-%s.1"):format(command.name), "OPTIONS")
            assert.same(names_of(command.options), all_in(options, "\n(%-%-[%l-]+)"), command.name)
            for _, option in ipairs(command.options) do
                if option.choices then
                    assert.matches(option.name .. " " .. option.choices .. "\n", options, 1, true)
                end
            end
        end
    end)

    it("lists the commands", function()
        local names = {}
        for number, command in ipairs(commands) do
            names[number] = "mulligan-" .. command.name
        end
        assert.same(sorted(names), all_in(section("man1/mulligan.1", "COMMANDS"), "\n(mulligan%-%l+)%(1%)"))
    end)

    it("leads to pages that are there", function()
        local pages, links = {}, 0
        for name in place:sh("cd moved/share/man && ls man*/*"):gmatch("man%d/([^\n]+)") do
            pages[name] = true
        end
        for name in pairs(pages) do
            local see = page(("man%s/%s"):format(name:match("%d$"), name)):match("\n%.SH SEE ALSO\n(.*)$")
            for other, number in see:gmatch("([%w.-]*mulligan[%w.-]*)%((%d)%)") do
                links = links + 1
                assert.is_true(pages[other .. "." .. number], name .. " names " .. other)
            end
        end
        assert.is_true(links > 20)
    end)

    it("of policies has the words of the reference", function()
        local text, count = page("man5/mulligan-policy.5"), 0
        local reference = process.read("docs/reference.md"):match("^(.-)\n## service%.lua\n")
        for word in reference:gmatch("\n### `([%w_.:]+)") do
            assert.matches("\n" .. word, text, 1, true)
            count = count + 1
        end
        assert.is_true(count > 40)
    end)
end)

-- offers asks a shell for many lines at once: a table of lines and what each must be answered by.
local function offers(shell, wanted)
    local lines = {}
    for line in pairs(wanted) do
        lines[#lines + 1] = line
    end
    local answers = shells[shell](place, sorted(lines))
    for number, line in ipairs(lines) do
        assert.same(wanted[line], answers[number], line)
    end
end

for _, shell in ipairs { "bash", "zsh", "fish" } do
    describe("the completion for " .. shell, function()
        if not shells.there(shell) then
            pending("isn't tried, since there is no " .. shell)
            return
        end

        it("offers the commands", function()
            local names = {}
            for number, command in ipairs(commands) do
                names[number] = command.name
            end
            local listed = shells[shell](place, { "mulligan ", "mulligan --" })
            local all = table.concat(listed[1], " ") .. " " .. table.concat(listed[2], " ")
            for _, name in ipairs { "--help", "--version", table.unpack(names) } do
                assert.matches(" " .. name .. " ", " " .. all .. " ", 1, true)
            end
        end)

        it("offers the options of each command, and no others", function()
            local wanted = {}
            for _, command in ipairs(commands) do
                wanted[("mulligan %s --"):format(command.name)] = names_of(command.options)
            end
            wanted["mulligan send run --"] = wanted["mulligan send --"] -- to a queue of that name
            offers(shell, wanted)
        end)

        it("offers the choices of an option", function()
            local wanted, count = {}, 0
            for _, command in ipairs(commands) do
                for _, option in ipairs(command.options) do
                    if option.choices then
                        wanted[("mulligan %s %s "):format(command.name, option.name)] = split(option.choices)
                        count = count + 1
                    end
                end
            end
            assert.is_true(count >= 5)
            offers(shell, wanted)
        end)
    end)
end

describe("the completion for bash", function()
    it("offers policies where one belongs, and the folders to them", function()
        local wanted = { ["mulligan check some/inner/"] = { "some/inner/c.lua" } }
        for _, line in ipairs { "mulligan check ", "mulligan run ", "mulligan decide --seed 1 ",
            "mulligan table --format=json ", "mulligan check --for " } do
            wanted[line .. "some/"] = { "some/a.lua", "some/inner" }
        end
        offers("bash", wanted)
    end)

    it("offers files and folders", function()
        local all = { "some/a.lua", "some/b.txt", "some/inner" }
        offers("bash", {
            ["mulligan send orders some/"] = all,
            ["mulligan send orders --transport T one two some/"] = all,
            ["mulligan explain a.lua --failure some/"] = all,
            ["mulligan init some/"] = { "some/inner" },
        })
    end)

    it("offers nothing where nothing is known or allowed", function()
        offers("bash", {
            ["mulligan send some/"] = { "some/" },
            ["mulligan table --consumer some/"] = { "some/" },
            ["mulligan check a.lua some/"] = { "some/" },
            ["mulligan check -- --"] = { "--" },
        })
    end)

    it("offers the rest of a choice behind a =", function()
        offers("bash", { ["mulligan table a.lua --format=j"] = { "--format=json" } })
    end)
end)

describe("the unit of systemd", function()
    local unit

    setup(function()
        unit = place:sh("cat moved/lib/systemd/system/mulligan@.service")
    end)

    it("runs the program of the prefix that was configured, by words that it knows", function()
        local program, words = unit:match("\nExecStart=(%S+)/bin/mulligan ([^\n]*)\n")
        local cache = process.read(process.build .. "/CMakeCache.txt")
        assert.equal(cache:match("\nCMAKE_INSTALL_PREFIX:%u+=([^\n]*)"), program)
        place.folder:write("etc/service.lua", 'require "mulligan".policy "policy.lua"')
        local ended = place.folder:run({ "sh", "-c", "cd etc && ../moved/bin/mulligan " .. words })
        assert.equal(2, ended.code)
        assert.matches("no m.consumer", ended.err, 1, true)
    end)

    it("gives handlers more than their grace time, and reloads by SIGHUP", function()
        local pages = process.read("docs/running.md")
        local grace = tonumber(pages:match("grace time of (%d+) s"))
        assert.is_true(tonumber(unit:match("\nTimeoutStopSec=(%d+)\n")) > 2 * grace)
        assert.matches("\nExecReload=kill -HUP $MAINPID\n", unit, 1, true)
    end)

    it("is started again after a crash and after 75, however often, and not where a person has to look", function()
        assert.matches("\nRestart=on-failure\n", unit, 1, true)
        assert.equal("1 2", unit:match "\nRestartPreventExitStatus=([^\n]*)\n")
        assert.equal("0", unit:match "^.-\n%[Unit%]\n.-\nStartLimitIntervalSec=(%d+)\n.-\n%[Service%]\n")
    end)

    it("has its user", function()
        local user = unit:match("\nUser=(%S+)\n")
        assert.matches("\nu " .. user .. " ", place:sh("cat moved/lib/sysusers.d/*.conf"), 1, true)
    end)

    if os.execute("command -v systemd-analyze >/dev/null") then
        it("has nothing that systemd doesn't know", function()
            local moved = unit:gsub("\nExecStart=%S+", "\nExecStart=" .. place.prefix .. "/bin/mulligan")
            place.folder:write("mulligan@.service", moved)
            local ended = place.folder:run { "systemd-analyze", "verify", "--man=no", "./mulligan@.service" }
            assert.equal("", ended.err)
            assert.equal(0, ended.code)
        end)
    end
end)
