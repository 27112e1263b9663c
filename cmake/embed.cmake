# embed.cmake: writes every .lua file below ROOT but those for editors into the C file OUT, as
# src/lua/machine/embedded.h says.
#
#   cmake -DROOT=lua -DOUT=embedded.c [-DBYTECODE=tool] -P embed.cmake
#
# A file's name is its Lua module's: mulligan/cmd/run.lua is "mulligan.cmd.run", and an init.lua is
# its folder. Where there is the tool of tools/bytecode.c, its bytecode stands beside its text. The
# bytes go out as numbers, since C has a limit for the length of a string.

# bytes_of: a file as C's numbers, and its size.
function(bytes_of path bytes_out size_out)
    file(READ "${path}" hex HEX)
    string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
    # A few bytes a line: compilers and people don't like long ones.
    string(REGEX REPLACE "((0x..,)(0x..,)?(0x..,)?(0x..,)?(0x..,)?(0x..,)?(0x..,)?(0x..,)?)" "\\1\n    "
        bytes "${bytes}")
    string(LENGTH "${hex}" size)
    math(EXPR size "${size} / 2")
    set(${bytes_out} "${bytes}" PARENT_SCOPE)
    set(${size_out} "${size}" PARENT_SCOPE)
endfunction()

# ask_tool runs the tool into a file.
function(ask_tool out)
    execute_process(COMMAND "${BYTECODE}" ${ARGN} OUTPUT_FILE "${out}" RESULT_VARIABLE status)
    if(NOT status EQUAL 0)
        message(FATAL_ERROR "${BYTECODE} ${ARGN}: ${status}")
    endif()
endfunction()

file(GLOB_RECURSE paths RELATIVE "${ROOT}" "${ROOT}/*.lua")
list(FILTER paths EXCLUDE REGEX "^mulligan/meta/") # for editors, never run
list(SORT paths)

set(texts "")
set(rows "")
set(count 0)
set(maker "")
if(BYTECODE)
    ask_tool("${OUT}.maker")
    bytes_of("${OUT}.maker" maker size)
endif()
foreach(path IN LISTS paths)
    string(REGEX REPLACE "\\.lua$" "" name "${path}")
    string(REGEX REPLACE "/init$" "" name "${name}")
    string(REPLACE "/" "." name "${name}")

    bytes_of("${ROOT}/${path}" bytes size)
    string(APPEND texts "/* ${path} */\nstatic const unsigned char text_${count}[] = {\n    ${bytes}0x00,\n};\n\n")
    string(APPEND rows "    {\"${name}\", (const char *)text_${count}, ${size}")
    if(BYTECODE)
        ask_tool("${OUT}.log" "${name}" "${ROOT}/${path}" "${OUT}.code")
        bytes_of("${OUT}.code" bytes size)
        string(APPEND texts "static const unsigned char code_${count}[] = {\n    ${bytes}\n};\n\n")
        string(APPEND rows ", (const char *)code_${count}, ${size}},\n")
    else()
        string(APPEND rows ", 0, 0},\n")
    endif()
    math(EXPR count "${count} + 1")
endforeach()

file(WRITE "${OUT}" "/* Made of the files below lua/ by cmake/embed.cmake. */
#include \"lua/machine/embedded.h\"

${texts}const mull__embedded mull__embedded_files[] = {
${rows}    {0, 0, 0, 0, 0},
};

const size_t mull__embedded_count = ${count};

const char mull__embedded_lua_ident[] = {
    ${maker}0x00,
};
")
