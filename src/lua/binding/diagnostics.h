/* diagnostics.h: what a mull_problem_fn is told, kept until Lua can take it. */
#ifndef MULL__DIAGNOSTICS_H
#define MULL__DIAGNOSTICS_H

#include "mulligan.h"

#include <lua.h>

typedef struct mull__problem {
    struct mull__problem *next;
    int line;
    const char *text; /* behind `file`; "" as file: none */
    char file[];
} mull__problem;

typedef struct mull__problems {
    mull__problem *first, *last;
} mull__problems;

/* mull__problem_keep is a mull_problem_fn whose data is a mull__problems. What finds no memory is
 * left out. */
void mull__problem_keep(const char *file, int line, const char *text, void *data);

void mull__problems_drop(mull__problems *problems);

/* mull__problems_push pushes a list of { file =, line =, text = }. */
void mull__problems_push(lua_State *L, const mull__problems *problems);

/* mull__problems_fail pushes nil, a message of one line each, the code's name, and the list of
 * { file =, line =, text = }; the problems are dropped. Without any, the message is the code's. */
int mull__problems_fail(lua_State *L, mull__problems *problems, int code);

#endif
