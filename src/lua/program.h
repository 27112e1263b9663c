/* program.h: the program `mulligan`, in Lua. */
#ifndef MULL__PROGRAM_H
#define MULL__PROGRAM_H

/* The exit code of a process that ended itself before its work was done: start it again. */
enum { MULL__EXIT_AGAIN = 75 };

/* mull__program runs lua/mulligan/cli.lua and gives the exit code: 0, 1, 2, or MULL__EXIT_AGAIN. */
int mull__program(int argc, char **argv);

#endif
