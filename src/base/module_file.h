/* module_file.h: parts of mulligan that are shared objects of their own, in a folder beside the
 * library. */
#ifndef MULL__MODULE_FILE_H
#define MULL__MODULE_FILE_H

#include <limits.h>
#include <stddef.h>

/* mull__modules_folders: where modules are, seen from the file that this is linked into: once
 * installed, and in its build. Each thing that the build links has its own; NULL in the static
 * library and in tests, which load none. */
extern const char *const mull__modules_folders[2] __attribute__((weak));

enum { MULL__MODULE_NAME_MAX = 31 };

/* mull__module_search is a search for a module; its user fills in the first four. */
typedef struct mull__module_search {
    const char *name;  /* of the file, without ".so"; it becomes part of a path */
    const char *title; /* what can't be loaded, for people */
    char *why;
    size_t size; /* of `why` */
    char file[PATH_MAX + MULL__MODULE_NAME_MAX + sizeof "/.so"];
    char folder[PATH_MAX];
    char own[PATH_MAX]; /* the file that this code is in */
} mull__module_search;

/* mull__module_symbol loads a module and gives what it exports under a name. NULL: `why` says what
 * is wrong with the module and what would be right, or is empty where there is none. Nothing is
 * kept: the process itself knows what it has loaded, which stays. Any thread. */
const void *mull__module_symbol(mull__module_search *search, const char *symbol);

/* mull__module_refuse writes why a module can't be used; 0. */
__attribute__((format(printf, 2, 3))) int mull__module_refuse(const mull__module_search *search,
                                                              const char *format, ...);

#endif
