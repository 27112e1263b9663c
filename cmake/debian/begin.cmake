# begin.cmake: read by cpack before it begins.

# Folders, and the program's path in the unit, are those of the prefix that was configured.
if(NOT CPACK_MULL_PREFIX STREQUAL "/usr")
    message(FATAL_ERROR "Debian's packages need a build for /usr: cmake --preset deb")
endif()

# It would become the first line of each package's own description.
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "")
