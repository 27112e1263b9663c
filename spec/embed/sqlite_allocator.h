/* sqlite_allocator.h: what SQLite asks for in memory, counted, and refused on demand. */
#ifndef SPEC_SQLITE_ALLOCATOR_H
#define SPEC_SQLITE_ALLOCATOR_H

#include <sqlite3.h>

#include "counting_allocator.h"

static counting_allocator sqlites;
static sqlite3_mem_methods sqlite_plain;

static void *sqlite_malloc(int bytes)
{
    return counting_allocator_refuses(&sqlites) ? NULL : sqlite_plain.xMalloc(bytes);
}

static void *sqlite_realloc(void *pointer, int bytes)
{
    return counting_allocator_refuses(&sqlites) ? NULL : sqlite_plain.xRealloc(pointer, bytes);
}

/* sqlite_take_over comes before anything of SQLite's is used. */
static inline void sqlite_take_over(void)
{
    sqlite3_config(SQLITE_CONFIG_GETMALLOC, &sqlite_plain);
    sqlite3_mem_methods methods = sqlite_plain;
    methods.xMalloc = sqlite_malloc;
    methods.xRealloc = sqlite_realloc;
    sqlite3_config(SQLITE_CONFIG_MALLOC, &methods);
    sqlite3_config(SQLITE_CONFIG_LOOKASIDE, 0, 0); /* each of its requests is one of ours */
}

#endif
