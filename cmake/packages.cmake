# packages.cmake: `cpack` in a build of the preset "deb" makes these Debian packages:
#
#   libmulligan0      the shared library
#   libmulligan-dev   headers, the static library, and what CMake and pkg-config find it by
#   mulligan          the program with all that is about it
#   lua-mulligan      the Lua module, and the types for editors
#   mulligan-NAME     each module, such as a transport that needs a library of its own
#
# cmake/debian has what they need beside what is installed anyway.

set(CPACK_GENERATOR DEB)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_PACKAGE_VENDOR "the mulligan authors")
# A maintainer needs an address. This one can't be somebody's.
set(CPACK_PACKAGE_CONTACT "the mulligan authors <mulligan@mulligan.invalid>")
set(CPACK_STRIP_FILES ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE
    GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(CPACK_PROJECT_CONFIG_FILE "${CMAKE_SOURCE_DIR}/cmake/debian/begin.cmake")
set(CPACK_PRE_BUILD_SCRIPTS "${CMAKE_SOURCE_DIR}/cmake/debian/fill.cmake")
# For these two.
set(CPACK_MULL_PREFIX "${CMAKE_INSTALL_PREFIX}")
set(CPACK_MULL_STRIP "${CMAKE_STRIP}")
set(CPACK_MULL_LICENSE "${CMAKE_SOURCE_DIR}/LICENSE")

set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)

# mull_debian says what the package of a component is called, and what about it is its own.
macro(mull_debian component name section synopsis description)
    string(TOUPPER ${component} mull_upper)
    set(CPACK_DEBIAN_${mull_upper}_PACKAGE_NAME ${name})
    set(CPACK_DEBIAN_${mull_upper}_PACKAGE_SECTION ${section})
    set(CPACK_DEBIAN_${mull_upper}_DESCRIPTION "${synopsis}\n${description}")
    list(APPEND CPACK_COMPONENTS_ALL ${component})
endmacro()

mull_debian(library libmulligan${mull_soversion} libs
    "recoverability policies for messages - shared library"
    "A policy, a few lines of Lua, says what becomes of a message whose handling
failed: a retry, a redelivery, a dead letter or a discard. This library decides
by it, and runs consumers on durable queues.")
configure_file(cmake/debian/shlibs.in debian/shlibs @ONLY)
set(CPACK_DEBIAN_LIBRARY_PACKAGE_CONTROL_EXTRA
    "${CMAKE_BINARY_DIR}/debian/shlibs;${CMAKE_SOURCE_DIR}/cmake/debian/triggers")

mull_debian(development libmulligan-dev libdevel
    "recoverability policies for messages - development files"
    "Headers, a static library, and what CMake and pkg-config find libmulligan by.")
# What mulligan.pc names for the static library is wanted by pkg-config for both. zlib is what sqlite3.pc
# names and Debian's package of it forgets.
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS
    "libmulligan${mull_soversion} (= ${PROJECT_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE}), liblua5.4-dev, libuv1-dev (>= 1.44), libsqlite3-dev (>= 3.40), zlib1g-dev")

mull_debian(program mulligan utils
    "retries, redelivers or dead-letters messages by a policy"
    "It takes messages from durable queues, runs handlers in Lua, and does with
those that fail what a policy says. It also checks policies, explains their
verdicts, and gives them to other programs as JSON.")
set(CPACK_DEBIAN_PROGRAM_PACKAGE_RECOMMENDS lua-mulligan)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_CONTROL_EXTRA
    "${CMAKE_SOURCE_DIR}/cmake/debian/postinst;${CMAKE_SOURCE_DIR}/cmake/debian/prerm;${CMAKE_SOURCE_DIR}/cmake/debian/postrm")

mull_debian(lua lua-mulligan interpreters
    "recoverability policies for messages - Lua module"
    "Decides by policies, and runs consumers on durable queues, in Lua 5.4. With
types for editors that use lua-language-server.")
set(CPACK_DEBIAN_LUA_PACKAGE_RECOMMENDS lua5.4)
set(CPACK_DEBIAN_LUA_PACKAGE_PROVIDES lua5.4-mulligan)

# Any one of those that it enhances loads it, and none needs it.
foreach(module IN LISTS mull_modules_packaged)
    mull_debian(module_${module} mulligan-${module} utils "${mull_module_${module}_synopsis}"
        "${mull_module_${module}_description}")
    set(CPACK_DEBIAN_${mull_upper}_PACKAGE_ENHANCES "mulligan, libmulligan${mull_soversion}, lua-mulligan")
    if(mull_module_${module}_is_for_lua)
        set(CPACK_DEBIAN_${mull_upper}_PACKAGE_ENHANCES "mulligan, lua-mulligan")
    endif()
endforeach()

include(CPack)
