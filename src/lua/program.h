/* program.h: the program `mulligan`, in Lua. */
#ifndef MULL__PROGRAM_H
#define MULL__PROGRAM_H

/* mull__program runs lua/mulligan/cli.lua and gives the exit code: 0, 1, or 2. */
int mull__program(int argc, char **argv);

#endif
