# planted.cmake: a program that looks for bugs, in a copy of the tree that has a bug planted in it,
# see planted.lua. The language and the program mulligan are left out, they take no part.
set(root "${CMAKE_CURRENT_LIST_DIR}/../..")

set(CMAKE_C_STANDARD 17)
set(CMAKE_C_EXTENSIONS OFF)
add_compile_definitions(_GNU_SOURCE)
add_compile_options(-O1 -g1)

find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)
pkg_check_modules(LIBRARIES REQUIRED IMPORTED_TARGET libuv sqlite3 libxxhash)

set(sources)
foreach(room base policy decide wire transport runtime)
    file(GLOB_RECURSE files CONFIGURE_DEPENDS "${root}/src/${room}/*.c")
    list(APPEND sources ${files})
endforeach()
list(FILTER sources EXCLUDE REGEX "/src/transport/amqp/") # a module

# planted_program NAME SOURCE...
function(planted_program name)
    add_executable(${name} ${sources} ${ARGN})
    target_include_directories(${name} PRIVATE "${root}/include" "${root}/src")
    target_link_libraries(${name} PRIVATE PkgConfig::LIBRARIES Threads::Threads)
endfunction()
