/* embedded.h: the Lua files of lua/, in the library itself, so that an installed program or a C
 * host needs no Lua path. The table is made by cmake/embed.cmake. */
#ifndef MULL__EMBEDDED_H
#define MULL__EMBEDDED_H

#include <stddef.h>

struct mull__embedded {
    const char *name; /* of the Lua module: "mulligan.policy"; an init.lua has its folder's */
    const char *text; /* ends in a NUL besides */
    size_t size;      /* in bytes, without the NUL */
};

/* mull__embedded_files is ordered by path; mull__embedded_count of them. */
extern const struct mull__embedded mull__embedded_files[];
extern const size_t mull__embedded_count;

#endif
