/* board.h: a transport of one's own. A board is in this program's memory, and any of its threads
 * may pin messages to it; it outlives the engines that work them off. */
#ifndef BOARD_H
#define BOARD_H

#include <mulligan/transport.h>

typedef struct board board;

/* board_new makes an empty board. NULL: out of memory. */
board *board_new(void);

/* board_put pins a message to a board, on message->queue, whether an engine is there or not. It is
 * copied. Any thread. MULL_EINVAL: without a queue; MULL_ENOMEM. */
int board_put(board *b, const mull_message *message);

/* board_count is how many messages of a queue are on a board, in whatever state. Any thread. */
uint64_t board_count(board *b, const char *queue);

/* board_free frees a board, which no engine has any more, with what is left on it. NULL is fine. */
void board_free(board *b);

/* board_attach is what `open` does, for a board that was found in another way. MULL_ENOMEM. */
int board_attach(board *b, void **self, mull_port *port);

/* The transport for mull_engine_scheme; its `data` is the board. The one URL is "board:". */
extern const mull_transport_ops board_transport;

#endif
