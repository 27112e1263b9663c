# library.cmake: libmulligan, shared and static, and what others find it by: headers, a CMake package
# with mulligan::mulligan and mulligan::static, and mulligan.pc. All of it may be moved.

set(mull_soversion 0)
set(mull_package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/mulligan")

# ---- Shared --------------------------------------------------------------------------------------

add_library(libmulligan SHARED)
add_library(mulligan::mulligan ALIAS libmulligan)
set_target_properties(libmulligan PROPERTIES OUTPUT_NAME mulligan EXPORT_NAME mulligan
    VERSION ${PROJECT_VERSION} SOVERSION ${mull_soversion})
target_link_libraries(libmulligan PRIVATE mulligan_objects PkgConfig::LUA)
target_include_directories(libmulligan INTERFACE
    "$<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}/include>" "$<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>")
mull_exports(libmulligan libmulligan.map)
target_link_options(libmulligan PRIVATE LINKER:--gc-sections)
mull_finds_modules(libmulligan "${CMAKE_INSTALL_LIBDIR}" modules)
install(TARGETS libmulligan EXPORT mulligan
    LIBRARY COMPONENT library NAMELINK_COMPONENT development)

# ---- Static --------------------------------------------------------------------------------------

# One object with all others in it, so that names that they share can be made local: see
# docs/decisions/0012. Objects of link-time optimization can't be joined so.
string(TOUPPER "CMAKE_C_FLAGS_${CMAKE_BUILD_TYPE}" mull_flags)
if(CMAKE_INTERPROCEDURAL_OPTIMIZATION OR "${CMAKE_C_FLAGS} ${${mull_flags}}" MATCHES "-flto")
    set(MULL_HAS_STATIC OFF)
    message(STATUS "No static library: it can't be made with link-time optimization")
else()
    set(MULL_HAS_STATIC ON)
endif()

if(MULL_HAS_STATIC)
    set(mull_whole "${CMAKE_BINARY_DIR}/mulligan.o")
    add_custom_command(
        OUTPUT "${mull_whole}"
        COMMAND ${CMAKE_LINKER} -r -o "${mull_whole}" $<TARGET_OBJECTS:mulligan_objects>
        COMMAND ${CMAKE_OBJCOPY} --wildcard "--keep-global-symbol=mull_[!_]*" "${mull_whole}"
        DEPENDS mulligan_objects $<TARGET_OBJECTS:mulligan_objects>
        COMMENT "Joining the objects"
        COMMAND_EXPAND_LISTS VERBATIM)
    set_source_files_properties("${mull_whole}" PROPERTIES EXTERNAL_OBJECT ON GENERATED ON)
    add_library(libmulligan_static STATIC "${mull_whole}")
    add_library(mulligan::static ALIAS libmulligan_static)
    set_target_properties(libmulligan_static PROPERTIES OUTPUT_NAME mulligan EXPORT_NAME static
        LINKER_LANGUAGE C)
    target_compile_definitions(libmulligan_static INTERFACE MULL_STATIC)
    target_include_directories(libmulligan_static INTERFACE
        "$<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}/include>" "$<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>")
    target_link_libraries(libmulligan_static INTERFACE
        "$<BUILD_INTERFACE:PkgConfig::LUA;PkgConfig::UV;PkgConfig::SQLITE;${mull_modules_libraries}>"
        "$<INSTALL_INTERFACE:PkgConfig::MULLIGAN_STATIC>" Threads::Threads m)
    install(TARGETS libmulligan_static EXPORT mulligan_static ARCHIVE COMPONENT development)
    install(EXPORT mulligan_static NAMESPACE mulligan:: FILE mulligan-static.cmake
        DESTINATION "${mull_package_dir}" COMPONENT development)
endif()

# ---- For CMake -----------------------------------------------------------------------------------

# The static library's exports are apart, since its users alone need what it stands on.
install(EXPORT mulligan NAMESPACE mulligan:: FILE mulligan-shared.cmake
    DESTINATION "${mull_package_dir}" COMPONENT development)

# What the static library stands on, as mulligan.pc and the CMake package name it.
set(mull_requires "${LUA_MODULE_NAME}, libuv >= 1.44, sqlite3 >= 3.40")
foreach(package IN LISTS mull_modules_requires)
    string(REGEX REPLACE "([<>]?=)" " \\1 " package "${package}")
    string(APPEND mull_requires ", ${package}")
endforeach()
string(REPLACE ", " "\" \"" mull_requires_quoted "${mull_requires}")
string(REPLACE " >= " ">=" mull_requires_quoted "\"${mull_requires_quoted}\"")

# What works with one 0.x need not work with the next.
if(PROJECT_VERSION_MAJOR EQUAL 0)
    set(mull_compatible SameMinorVersion)
else()
    set(mull_compatible SameMajorVersion)
endif()
configure_package_config_file(cmake/mulligan-config.cmake.in mulligan-config.cmake
    INSTALL_DESTINATION "${mull_package_dir}"
    NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file(mulligan-config-version.cmake COMPATIBILITY ${mull_compatible})
install(FILES "${CMAKE_BINARY_DIR}/mulligan-config.cmake" "${CMAKE_BINARY_DIR}/mulligan-config-version.cmake"
    DESTINATION "${mull_package_dir}" COMPONENT development)

# ---- For pkg-config ------------------------------------------------------------------------------

# Its folders are seen from where it lies, if they are below the prefix together.
set(mull_pc_dir "${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig")
cmake_path(IS_PREFIX CMAKE_INSTALL_PREFIX "${mull_pc_dir}" NORMALIZE mull_pc_moves)
if(mull_pc_moves)
    cmake_path(RELATIVE_PATH CMAKE_INSTALL_PREFIX BASE_DIRECTORY "${mull_pc_dir}"
        OUTPUT_VARIABLE mull_pc_prefix)
    set(mull_pc_prefix "\${pcfiledir}/${mull_pc_prefix}")
else()
    set(mull_pc_prefix "${CMAKE_INSTALL_PREFIX}")
endif()
cmake_path(IS_RELATIVE CMAKE_INSTALL_INCLUDEDIR mull_pc_include)
if(mull_pc_include)
    set(mull_pc_include "\${prefix}/${CMAKE_INSTALL_INCLUDEDIR}")
else()
    set(mull_pc_include "${CMAKE_INSTALL_INCLUDEDIR}")
endif()
configure_file(cmake/mulligan.pc.in mulligan.pc @ONLY)
install(FILES "${CMAKE_BINARY_DIR}/mulligan.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig"
    COMPONENT development)
install(DIRECTORY include/ TYPE INCLUDE COMPONENT development)

# The source of mulligan/conformance.h, for writers of transports.
install(FILES spec/transport/conformance.c spec/transport/conformance_stage.h
    DESTINATION "${CMAKE_INSTALL_DATADIR}/mulligan" COMPONENT development)
