/* diagnostics.h: what a mull_problem_fn is told, kept until Lua can take it. */
#ifndef MULL__DIAGNOSTICS_H
#define MULL__DIAGNOSTICS_H

#include "mulligan.h"

#include <lua.h>

typedef struct mull__diagnostic {
    struct mull__diagnostic *next;
    int line;
    const char *text; /* behind `file`; "" as file: none */
    char file[];
} mull__diagnostic;

typedef struct mull__diagnostics {
    mull__diagnostic *first, *last;
} mull__diagnostics;

/* mull__diagnostic_keep is a mull_problem_fn whose data is a mull__diagnostics. What finds no
 * memory is left out. */
void mull__diagnostic_keep(const char *file, int line, const char *text, void *data);

void mull__diagnostics_drop(mull__diagnostics *problems);

/* mull__diagnostics_push pushes a list of { file =, line =, text = }. */
void mull__diagnostics_push(lua_State *L, const mull__diagnostics *problems);

/* mull__diagnostics_fail pushes nil, a message of one line each, the code's name, and the list of
 * { file =, line =, text = }; the problems are dropped. Without any, the message is the code's. */
int mull__diagnostics_fail(lua_State *L, mull__diagnostics *problems, int code);

#endif
