# fill.cmake: adds to the staged packages what Debian asks of each: its licence and a changelog; and
# packs what is to be packed. It runs for all of them at once, each in a folder by its component.

string(TIMESTAMP today "%a, %d %b %Y %H:%M:%S +0000" UTC)
file(READ "${CPACK_MULL_LICENSE}" licence)
string(REGEX MATCH "Copyright \\(c\\) ([^\n]+)" line "${licence}")
set(holder "${CMAKE_MATCH_1}")
string(REGEX REPLACE "^.*Permission is hereby" "Permission is hereby" licence "${licence}")
string(STRIP "${licence}" licence)
string(REGEX REPLACE "\n\n" "\n.\n" licence "${licence}")
string(REGEX REPLACE "\n" "\n " licence "${licence}")

# pack makes gzip files of some, the same ones whenever it is run.
function(pack)
    if(ARGN)
        execute_process(COMMAND gzip -9n ${ARGN} COMMAND_ERROR_IS_FATAL ANY)
    endif()
endfunction()

foreach(component IN LISTS CPACK_COMPONENTS_ALL)
    string(TOUPPER ${component} upper)
    set(name ${CPACK_DEBIAN_${upper}_PACKAGE_NAME})
    set(usr "${CPACK_TEMPORARY_INSTALL_DIRECTORY}/${component}/usr")
    set(doc "${usr}/share/doc/${name}")
    file(WRITE "${doc}/copyright"
        "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\n"
        "Upstream-Name: mulligan\n\n"
        "Files: *\nCopyright: ${holder}\nLicense: Expat\n ${licence}\n")
    file(WRITE "${doc}/changelog.Debian"
        "${name} (${CPACK_PACKAGE_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE}) unstable; urgency=medium\n\n"
        "  * Packaged by its own build.\n\n"
        " -- ${CPACK_PACKAGE_CONTACT}  ${today}\n")
    file(GLOB pages "${usr}/share/man/man*/*")
    pack("${doc}/changelog.Debian" ${pages})
    file(GLOB_RECURSE archives "${usr}/*.a")
    foreach(archive IN LISTS archives)
        execute_process(COMMAND "${CPACK_MULL_STRIP}" --strip-debug --remove-section=.comment
            --enable-deterministic-archives "${archive}"
            COMMAND_ERROR_IS_FATAL ANY)
    endforeach()
    file(CHMOD_RECURSE "${doc}" FILE_PERMISSIONS OWNER_READ OWNER_WRITE GROUP_READ WORLD_READ
        DIRECTORY_PERMISSIONS ${CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS})
endforeach()
