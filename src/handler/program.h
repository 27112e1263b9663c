/* program.h: what the system is told of a program that is to run: its file, its environment. */
#ifndef MULL__HANDLER_PROGRAM_H
#define MULL__HANDLER_PROGRAM_H

#include "mulligan.h"

#include <stddef.h>

/* mull__program_find looks for a program as execvp does: a name with a slash is a path, any other
 * is looked for in the folders of PATH. 0; or libuv's UV_ENOENT, UV_EACCES or another code. */
int mull__program_find(const char *name);

/* mull__program_environment gives this process's variables with others in their place: "NAME=VALUE"
 * sets one, "NAME" takes it out. The list, and the others, end in NULL. It is freed by mull__free,
 * and its texts are borrowed. NULL: out of memory. */
const char **mull__program_environment(const mull_allocator *allocator, const char *const *others);

/* mull__program_file gives a descriptor of a file in memory with these bytes, to be read from its
 * beginning, and closed when a program is started. Below 0: libuv's code. */
int mull__program_file(const char *bytes, size_t size);

#endif
