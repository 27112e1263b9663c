/* main.c: the program `mulligan`. */
#include "lua/program/program.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

enum { EXIT_USAGE = 2 };

/* open_standard opens /dev/null in place of stdin, stdout and stderr where they are closed: the
 * next file would get such a number, be written to as if it were stdout, and libuv aborts at it. */
static int open_standard(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
        if (fcntl(fd, F_GETFD) == -1 && errno == EBADF && open("/dev/null", O_RDWR) != fd)
            return -1;
    }
    return 0;
}

int main(int argc, char **argv)
{
    if (open_standard() != 0)
        return EXIT_USAGE;
    return mull__program(argc, argv);
}
