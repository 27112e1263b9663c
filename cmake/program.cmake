# program.cmake: what is installed beside the program: man pages, completions, the unit of systemd with
# its user, the pages of docs, and the examples.

set(MULL_MAN AUTO CACHE STRING "Man pages: ON, OFF, or AUTO: where scdoc is installed")
set(MULL_ZSH_DIR "${CMAKE_INSTALL_DATADIR}/zsh/site-functions" CACHE STRING
    "Where the completion for zsh is installed: a folder of zsh's fpath")
set(MULL_SYSTEMD_DIR "lib/systemd/system" CACHE STRING "Where units of systemd are installed")
set(MULL_SYSUSERS_DIR "lib/sysusers.d" CACHE STRING "Where users of systemd's units are installed")

# ---- Man pages -----------------------------------------------------------------------------------

find_program(SCDOC scdoc)
mark_as_advanced(SCDOC)
if(MULL_MAN STREQUAL "AUTO" AND NOT SCDOC)
    message(STATUS "No man pages: there is no scdoc")
elseif(MULL_MAN AND NOT SCDOC)
    message(FATAL_ERROR "MULL_MAN is on, and there is no scdoc")
elseif(MULL_MAN)
    file(GLOB mull_man_sources CONFIGURE_DEPENDS docs/man/*.scd)
    set(mull_man "")
    foreach(source IN LISTS mull_man_sources)
        cmake_path(GET source STEM LAST_ONLY page)
        cmake_path(GET page EXTENSION LAST_ONLY section)
        string(SUBSTRING "${section}" 1 -1 section)
        set(made "${CMAKE_BINARY_DIR}/man/${page}")
        add_custom_command(OUTPUT "${made}" COMMAND ${SCDOC} < "${source}" > "${made}"
            DEPENDS "${source}" VERBATIM)
        list(APPEND mull_man "${made}")
        if(section STREQUAL "3")
            set(component development)
        else()
            set(component program)
        endif()
        install(FILES "${made}" DESTINATION "${CMAKE_INSTALL_MANDIR}/man${section}" COMPONENT ${component})
    endforeach()
    file(MAKE_DIRECTORY "${CMAKE_BINARY_DIR}/man")
    add_custom_target(mulligan_man ALL DEPENDS ${mull_man})
endif()

# ---- Completions ---------------------------------------------------------------------------------

install(FILES completions/mulligan DESTINATION "${CMAKE_INSTALL_DATADIR}/bash-completion/completions"
    COMPONENT program)
install(FILES completions/_mulligan DESTINATION "${MULL_ZSH_DIR}" COMPONENT program)
install(FILES completions/mulligan.fish DESTINATION "${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d"
    COMPONENT program)

# ---- systemd -------------------------------------------------------------------------------------

configure_file(systemd/mulligan@.service.in mulligan@.service @ONLY)
install(FILES "${CMAKE_BINARY_DIR}/mulligan@.service" DESTINATION "${MULL_SYSTEMD_DIR}" COMPONENT program)
install(FILES systemd/mulligan.conf DESTINATION "${MULL_SYSUSERS_DIR}" COMPONENT program)

# ---- Pages ---------------------------------------------------------------------------------------

install(DIRECTORY docs/ DESTINATION "${CMAKE_INSTALL_DOCDIR}" COMPONENT program
    FILES_MATCHING PATTERN "*.md" PATTERN decisions EXCLUDE PATTERN man EXCLUDE)

# What `./do demo` leaves there is none of them.
install(DIRECTORY examples/ DESTINATION "${CMAKE_INSTALL_DOCDIR}/examples" COMPONENT development
    FILES_MATCHING PATTERN "*.c" PATTERN "*.h" PATTERN "*.cpp" PATTERN "*.py" PATTERN "*.lua"
    PATTERN "CMakeLists.txt" PATTERN "__pycache__" EXCLUDE
    PATTERN "*.sh" PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE
        WORLD_READ WORLD_EXECUTE)
