local sample = require "tools.sample"

describe("tools/api.lua", function()
    local header = [[
/* mulligan.h: a small one. */
#ifndef MULLIGAN_H
#define MULLIGAN_H

/* MULL_API is before each function. */
#define MULL_API

/* mull_fn is called. */
typedef void (*mull_fn)(void *data);

/* mull_pair has a `first`, and a second. */
typedef struct mull_pair {
    size_t size;
    int first;
    int second, third; /* those behind it */
    union {
        int one; /* as two is */
        int two;
    } as;
    void (*call)(void *data, int number); /* when it is read */
} mull_pair;

/* mull_kind is one of two. */
typedef enum mull_kind { MULL_A, MULL_B } mull_kind;

/* mull_one does this, mull_two that. */
MULL_API int mull_one(const mull_pair *pair, mull_fn done, int (*ask)(int number),
                      int number, char name[33]);
MULL_API int mull_two(void);

#endif
]]

    -- Runs it on that header with one text in place of another, and on a page and a table that fit.
    local function check(old, new, page, rows)
        local first, last = header:find(old or "", 1, true)
        assert(first, old)
        return sample.run("api", {
            ["include/mulligan.h"] = header:sub(1, first - 1) .. (new or "") .. header:sub(last + 1),
            ["include/mulligan/transport.h"] = "/* transport.h */\n",
            ["docs/api.md"] = page or "`mull_one`, `mull_two`\n",
            ["spec/embed/misuse_nulls.c"] = rows
                or '    {"mull_one", "pair! done? ask- name!", one},\n    {"mull_two", "", two},\n',
        })
    end

    local function refuses(line, complaint, ...)
        local passed, output = check(...)
        assert.is_false(passed, output)
        assert.is_truthy(output:find(("include/mulligan.h:%d: %s"):format(line, complaint), 1, true), output)
        assert.is_truthy(output:find(", 1 problems\n", 1, true), output)
    end

    it("is content with what is described", function()
        local passed, output = check()
        assert.is_true(passed, output)
        assert.equal("2 functions, 1 structs, 1 enums, 0 problems\n", output)
    end)

    it("wants a comment above each declaration, or above its list", function()
        refuses(9, "mull_fn has no comment", "/* mull_fn is called. */\n", "\n")
        refuses(23, "mull_kind has no comment", "/* mull_kind is one of two. */\n")
        refuses(30, "mull_two has no comment", "MULL_API int mull_two", "\nMULL_API int mull_two")
    end)

    it("wants a comment to begin with the name", function()
        refuses(24, "the comment of mull_kind doesn't begin with its name", "mull_kind is one", "This is one")
        refuses(24, "the comment of mull_kind doesn't begin with its name", "mull_kind is one", "mull_kinds is one")
    end)

    it("wants each field described", function()
        refuses(14, "first of mull_pair isn't described", "a `first`", "one")
        refuses(15, "third of mull_pair isn't described", " /* those behind it */")
        refuses(18, "two of mull_pair isn't described", "/* as two is */", "/* as the other is */")
        refuses(20, "call of mull_pair isn't described", " /* when it is read */")
    end)

    it("wants a value without a list's comment to have its own", function()
        local kinds = "/* mull_kind is one of two. */\ntypedef enum mull_kind { MULL_A, MULL_B } mull_kind;"
        refuses(24, "MULL_C isn't described", kinds, "\nenum { MULL_C = 1 };")
        assert.is_true((check(kinds, kinds .. "\n\nenum {\n    MULL_C = 1 /* sea */\n};")))
    end)

    it("wants each function in the index", function()
        refuses(27, "mull_one isn't in docs/api.md", nil, nil, "`mull_one_more`, `mull_two`\n")
    end)

    it("wants a row for each function, with its pointers in their order", function()
        local wanted = 'mull_one needs a row in spec/embed/misuse_nulls.c, with its pointers: '
            .. '"pair done ask name"'
        refuses(27, wanted, nil, nil, nil, '{"mull_two", "", two},\n')
        refuses(27, wanted, nil, nil, nil, '{"mull_one", "pair! done? name!", one},{"mull_two", "", two},\n')
        refuses(27, wanted, nil, nil, nil, '{"mull_one", "done! pair! ask! name!", one},{"mull_two", "", two},\n')
        refuses(29, 'mull_two needs a row in spec/embed/misuse_nulls.c, with its pointers: ""', nil, nil, nil,
            '{"mull_one", "pair! done? ask- name!", one},\n')
    end)

    it("says what it doesn't know", function()
        refuses(24, "this is no declaration that tools/api.lua knows", "/* mull_kind is one of two. */\n",
            "/* x is not declared. */\nint x = 1;\n\n/* mull_kind is one of two. */\n")
    end)
end)
