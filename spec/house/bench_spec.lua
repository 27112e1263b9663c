-- bench/decide beside another build: who takes longer, by CPU time in turns, is told by the exit code.
local process = require "support.process"

describe("bench/decide beside", function()
    local decide = process.build .. "/bench/decide"
    local folder

    before_each(function()
        folder = process.folder()
    end)

    after_each(function()
        folder:remove()
    end)

    -- Runs it beside one that decides `times` as often where it is told a number of decisions.
    local function beside(times)
        folder:write("other", ('#!/bin/sh\n[ "$3" -gt 1 ] && set -- "$1" "$2" "$(($3 %s))"\nexec "%s" "$@"\n'):format(
            times, decide))
        assert(os.execute(("chmod +x '%s'"):format(folder:path "other")))
        return folder:run({ decide, "beside", folder:path "other", "1", "ids" })
    end

    it("fails where a case takes longer than the other build's", function()
        local ran = beside "/ 3"
        assert.equal(1, ran.code, ran.err)
        assert.matches("ids +%d+%.%d%d%d  too much\n", ran.out)
    end)

    it("passes where it takes no longer", function()
        local ran = beside "* 3"
        assert.equal(0, ran.code, ran.err)
        assert.matches("ids +0%.%d%d%d\n", ran.out)
    end)
end)
