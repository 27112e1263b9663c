-- python.lua: a Python that has what the client of clients/python needs.
local python = {}

python.LACKS = "python3-msgpack isn't installed (packages python3, of 3.11, and python3-msgpack)"

-- with_msgpack gives its path: the first of PATH, or Debian's own, which has Debian's packages; nil: there is none.
function python.with_msgpack()
    for _, name in ipairs { "python3", "/usr/bin/python3" } do
        local asks = name .. ' -c "import msgpack, sys; sys.exit(sys.version_info < (3, 11))" 2>/dev/null'
        if os.execute(asks) then
            return name
        end
    end
end

return python
