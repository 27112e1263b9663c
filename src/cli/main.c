/* main.c: the program `mulligan`. */
#include "lua/program.h"

int main(int argc, char **argv)
{
    return mull__program(argc, argv);
}
