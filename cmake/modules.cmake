# modules.cmake: parts that need a client library of their own. Each is a shared object in a folder beside
# libmulligan, which is loaded when it is first used; a transport may be a part of the library, where
# MULL_STATIC_MODULES names it. See docs/decisions/0017 and 0028.

set(MULL_STATIC_MODULES "" CACHE STRING
    "Modules that are linked into the library and the program, a list such as amqp;nats")
set(mull_modules_dir "${CMAKE_INSTALL_LIBDIR}/mulligan/modules")
set(mull_modules_built "${CMAKE_BINARY_DIR}/modules")
set(mull_modules_known "")   # all that were named
set(mull_modules_linked "")  # those that are parts of the library
set(mull_modules_requires "") # what these need, as pkg-config has it
set(mull_modules_libraries "") # the same, as CMake has it
set(mull_modules_packaged "") # those that are packages

# Its permissions are looked at, whatever the umask.
file(MAKE_DIRECTORY "${mull_modules_built}")
file(CHMOD "${mull_modules_built}" PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE
    GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)

# What a transport may use of the objects.
add_library(mulligan_shared STATIC EXCLUDE_FROM_ALL
    "$<FILTER:$<TARGET_OBJECTS:mulligan_objects>,INCLUDE,/src/(base|net|wire)/>")
set_target_properties(mulligan_shared PROPERTIES LINKER_LANGUAGE C)

# The connections of modules that speak a protocol: all of src/net, of which the library has no more than its own
# sockets, since the rest needs OpenSSL.
file(GLOB mull_net_sources CONFIGURE_DEPENDS src/net/*.c)
set(mull_net_requires "openssl>=3.0")
pkg_check_modules(MULL_NET IMPORTED_TARGET ${mull_net_requires})
if(MULL_NET_FOUND)
    add_library(mulligan_net STATIC EXCLUDE_FROM_ALL ${mull_net_sources})
    target_include_directories(mulligan_net PUBLIC include src)
    target_link_libraries(mulligan_net PUBLIC PkgConfig::UV PkgConfig::MULL_NET)
endif()

# mull_add_module(NAME [NET] [LUA] SOURCES FILE... [REQUIRES PACKAGE...] [SYNOPSIS TEXT DESCRIPTION TEXT]) makes a
# module: a transport for the scheme NAME; or, with LUA, something that Lua alone uses, which libmulligan has nothing
# of. What it requires is pkg-config's, such as "librabbitmq>=0.10"; where that isn't there, the
# module is left out. With a synopsis it is installed, and has a Debian package mulligan-NAME. It may use what all
# transports share, of which it gets a copy; with NET, src/net as well.
macro(mull_add_module name)
    cmake_parse_arguments(module "NET;LUA" "SYNOPSIS;DESCRIPTION" "SOURCES;REQUIRES" ${ARGN})
    list(APPEND mull_modules_known ${name})
    if(module_NET)
        list(APPEND module_REQUIRES ${mull_net_requires})
    endif()
    list(TRANSFORM module_SOURCES PREPEND "${CMAKE_SOURCE_DIR}/" REGEX "^[^/]")
    list(REMOVE_ITEM mull_sources ${module_SOURCES})
    set(module_libraries "")
    set(module_found ON)
    if(module_REQUIRES)
        string(TOUPPER "mull_${name}" module_prefix)
        pkg_check_modules(${module_prefix} IMPORTED_TARGET ${module_REQUIRES})
        set(module_found ${${module_prefix}_FOUND})
        set(module_libraries PkgConfig::${module_prefix})
    endif()
    if(module_LUA AND ${name} IN_LIST MULL_STATIC_MODULES)
        message(FATAL_ERROR "MULL_STATIC_MODULES has ${name}, which can't be linked in")
    elseif(NOT module_found AND ${name} IN_LIST MULL_STATIC_MODULES)
        message(FATAL_ERROR "MULL_STATIC_MODULES has ${name}, which needs ${module_REQUIRES}")
    elseif(NOT module_found)
        message(STATUS "No module ${name}: there is no ${module_REQUIRES}")
    elseif(${name} IN_LIST MULL_STATIC_MODULES)
        mull_link_module(${name})
    elseif(NOT MULL_LUA_ONLY)
        mull_shared_module(${name})
    endif()
endmacro()

macro(mull_link_module name)
    list(APPEND mull_modules_linked ${name})
    list(APPEND mull_modules_requires ${module_REQUIRES})
    list(APPEND mull_modules_libraries ${module_libraries})
    list(APPEND mull_sources ${module_SOURCES})
    if(module_NET)
        list(APPEND mull_sources ${mull_net_sources})
        list(REMOVE_DUPLICATES mull_sources)
    endif()
    set_property(SOURCE ${module_SOURCES} APPEND PROPERTY COMPILE_DEFINITIONS MULL__LINKED)
endmacro()

macro(mull_shared_module name)
    add_library(module_${name} MODULE ${module_SOURCES})
    set_target_properties(module_${name} PROPERTIES OUTPUT_NAME ${name} PREFIX ""
        LIBRARY_OUTPUT_DIRECTORY "${mull_modules_built}")
    target_compile_definitions(module_${name} PRIVATE MULL_STATIC)
    target_include_directories(module_${name} PRIVATE include src)
    if(module_NET)
        target_link_libraries(module_${name} PRIVATE mulligan_net)
    endif()
    target_link_libraries(module_${name} PRIVATE mulligan_shared ${module_libraries} PkgConfig::UV
        Threads::Threads)
    # A sanitizer's functions are the program's.
    if(NOT MULL_SANITIZE)
        target_link_options(module_${name} PRIVATE LINKER:-z,defs)
    endif()
    add_custom_command(TARGET module_${name} POST_BUILD COMMAND chmod go-w "$<TARGET_FILE:module_${name}>" VERBATIM)
    set(module_excluded EXCLUDE_FROM_ALL)
    if(module_SYNOPSIS)
        set(module_excluded "")
        list(APPEND mull_modules_packaged ${name})
        set(mull_module_${name}_synopsis "${module_SYNOPSIS}")
        set(mull_module_${name}_description "${module_DESCRIPTION}")
        set(mull_module_${name}_is_for_lua ${module_LUA})
    endif()
    install(TARGETS module_${name} LIBRARY DESTINATION "${mull_modules_dir}" COMPONENT module_${name}
        ${module_excluded})
endmacro()

# mull_finds_modules says where modules are to what is linked of the objects and lies in `folder`, a folder of the
# installation; in the build they are at `built`.
function(mull_finds_modules target folder built)
    set(installed "${mull_modules_dir}")
    if(NOT IS_ABSOLUTE "${installed}")
        cmake_path(ABSOLUTE_PATH folder BASE_DIRECTORY "${CMAKE_INSTALL_PREFIX}")
        cmake_path(ABSOLUTE_PATH installed BASE_DIRECTORY "${CMAKE_INSTALL_PREFIX}")
        cmake_path(RELATIVE_PATH installed BASE_DIRECTORY "${folder}")
    endif()
    configure_file("${CMAKE_SOURCE_DIR}/cmake/modules_folder.c.in" "modules_folder/${target}.c" @ONLY)
    target_sources(${target} PRIVATE "${CMAKE_BINARY_DIR}/modules_folder/${target}.c")
endfunction()

# ---- The modules ---------------------------------------------------------------------------------

if(MULL_TESTS)
    mull_add_module(board SOURCES examples/board/board.c examples/board/module.c)
endif()

file(GLOB mull_amqp CONFIGURE_DEPENDS src/transport/amqp/*.c)
mull_add_module(amqp NET SOURCES ${mull_amqp} REQUIRES librabbitmq>=0.10
    SYNOPSIS "recoverability policies for messages - RabbitMQ"
    DESCRIPTION "The transport amqp:// of mulligan: consumers on RabbitMQ's queues, on as many
machines as you like.")

file(GLOB mull_curl CONFIGURE_DEPENDS src/handler/curl/*.c)
mull_add_module(http LUA SOURCES ${mull_curl} REQUIRES libcurl>=7.88
    SYNOPSIS "recoverability policies for messages - HTTP"
    DESCRIPTION "What m.http and m.fetch of mulligan need: handlers that are HTTP servers, and
requests that handlers wait for.")

foreach(name IN LISTS MULL_STATIC_MODULES)
    if(NOT ${name} IN_LIST mull_modules_known)
        message(FATAL_ERROR "MULL_STATIC_MODULES has ${name}; there are: ${mull_modules_known}")
    endif()
endforeach()
if(mull_modules_linked)
    list(TRANSFORM mull_modules_linked REPLACE "(.+)" "ROW(\\1)" OUTPUT_VARIABLE rows)
    string(REPLACE ";" " " rows "${rows}")
    set_property(SOURCE src/transport/transports.c APPEND PROPERTY COMPILE_DEFINITIONS
        "MULL__STATIC_MODULES=${rows}")
endif()
