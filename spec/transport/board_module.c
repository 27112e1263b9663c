/* board_module.c: the Lua module, with the transport of examples/board built in: so that the tests
 * which every transport has to pass can be run with it. "board:NAME" is a board of that name, which
 * lives as long as the module is loaded. */
#include "board/board.h"

#include <stdlib.h>
#include <string.h>

typedef struct named {
    struct named *next;
    board *board;
    char url[];
} named;

static named *boards;
static board *opening; /* what board.c takes for the data of its scheme */

static board *board_named(const char *url)
{
    for (named *n = boards; n; n = n->next)
        if (strcmp(n->url, url) == 0)
            return n->board;
    named *made = malloc(sizeof *made + strlen(url) + 1);
    if (!made)
        abort();
    made->board = board_new();
    made->next = boards;
    memcpy(made->url, url, strlen(url) + 1);
    boards = made;
    return made->board;
}

__attribute__((destructor)) static void free_boards(void)
{
    for (named *n = boards, *next; n; n = next) {
        next = n->next;
        board_free(n->board);
        free(n);
    }
}

static int named_look(const char *url, const char *queue, mull_abilities *floor, char *why,
                      size_t why_size)
{
    (void)url;
    return board_transport.look("board:", queue, floor, why, why_size);
}

static int named_open(void **self, mull_port *port, const char *url, char *why, size_t why_size)
{
    opening = board_named(url);
    return board_transport.open(self, port, "board:", why, why_size);
}

void *__wrap_mull_port_data(const mull_port *port);
const mull_transport_ops *__real_mull__transport_for(const char *url);
const mull_transport_ops *__wrap_mull__transport_for(const char *url);

void *__wrap_mull_port_data(const mull_port *port)
{
    (void)port;
    return opening;
}

const mull_transport_ops *__wrap_mull__transport_for(const char *url)
{
    static mull_transport_ops ops;
    ops = board_transport;
    ops.look = named_look;
    ops.open = named_open;
    return strncmp(url, "board:", 6) == 0 ? &ops : __real_mull__transport_for(url);
}
