# embed.cmake: writes every .lua file below ROOT but those for editors into the C file OUT, as
# src/lua/embedded.h says.
#
#   cmake -DROOT=lua -DOUT=embedded.c -P embed.cmake
#
# A file's name is its Lua module's: mulligan/cmd/run.lua is "mulligan.cmd.run", and an init.lua is
# its folder. The bytes go out as numbers, since C has a limit for the length of a string.
file(GLOB_RECURSE paths RELATIVE "${ROOT}" "${ROOT}/*.lua")
list(FILTER paths EXCLUDE REGEX "^mulligan/meta/") # for editors, never run
list(SORT paths)

set(texts "")
set(rows "")
set(count 0)
foreach(path IN LISTS paths)
    file(READ "${ROOT}/${path}" hex HEX)
    string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
    # Twenty bytes a line: compilers and people don't like long ones.
    string(REGEX REPLACE "((0x..,)(0x..,)?(0x..,)?(0x..,)?(0x..,)?(0x..,)?(0x..,)?(0x..,)?)" "\\1\n    "
        bytes "${bytes}")
    string(LENGTH "${hex}" size)
    math(EXPR size "${size} / 2")

    string(REGEX REPLACE "\\.lua$" "" name "${path}")
    string(REGEX REPLACE "/init$" "" name "${name}")
    string(REPLACE "/" "." name "${name}")

    string(APPEND texts "/* ${path} */\nstatic const unsigned char text_${count}[] = {\n    ${bytes}0x00,\n};\n\n")
    string(APPEND rows "    {\"${name}\", (const char *)text_${count}, ${size}},\n")
    math(EXPR count "${count} + 1")
endforeach()

file(WRITE "${OUT}" "/* Made of the files below lua/ by cmake/embed.cmake. */
#include \"lua/embedded.h\"

${texts}const struct mull__embedded mull__embedded_files[] = {
${rows}    {0, 0, 0},
};

const size_t mull__embedded_count = ${count};
")
