/* module.c: the transport `board:` as a module, which mulligan loads when a service.lua has such a
 * URL. "board:NAME" is the board of that name: it is made when it is first asked for, and lives as
 * long as the process.
 *
 *   cc -shared -fPIC -fvisibility=hidden -DMULL_STATIC module.c board.c \
 *       $(pkg-config --cflags mulligan libuv) -o board.so
 */
#include "board.h"

#include <mulligan/module.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

typedef struct named {
    struct named *next;
    board *board;
    char url[];
} named;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static named *boards;

static named *named_new(const char *url)
{
    named *made = malloc(sizeof *made + strlen(url) + 1);
    if (!made || !(made->board = board_new())) {
        free(made);
        return NULL;
    }
    strcpy(made->url, url);
    made->next = boards;
    boards = made;
    return made;
}

/* board_named finds the board of a URL, or makes it. NULL: out of memory. */
static board *board_named(const char *url)
{
    pthread_mutex_lock(&mutex);
    named *found = boards;
    while (found && strcmp(found->url, url) != 0)
        found = found->next;
    if (!found)
        found = named_new(url);
    pthread_mutex_unlock(&mutex);
    return found ? found->board : NULL;
}

static int module_look(const char *url, const char *queue, mull_abilities *floor, char *why,
                       size_t why_size)
{
    (void)url; /* any name is one of a board */
    return board_transport.look("board:", queue, floor, why, why_size);
}

static int module_open(void **self, mull_port *port, const char *url, char *why, size_t why_size)
{
    (void)why;
    (void)why_size;
    board *b = board_named(url);
    return b ? board_attach(b, self, port) : MULL_ENOMEM;
}

static mull_transport_ops transport;

/* What isn't ours is as in board.c, before anybody asks for the module. */
__attribute__((constructor)) static void fill_in(void)
{
    transport = board_transport;
    transport.look = module_look;
    transport.open = module_open;
}

MULL_MODULE(board, &transport);
