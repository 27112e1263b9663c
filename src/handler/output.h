/* output.h: what a process writes to a pipe, as much of it as is kept. */
#ifndef MULL__OUTPUT_H
#define MULL__OUTPUT_H

#include "mulligan.h"

#include <uv.h>

/* mull__output is begun zeroed but for what its owner fills in. */
typedef struct mull__output {
    const mull_allocator *allocator;        /* these four: the owner's */
    size_t most;                            /* bytes that are kept */
    int keeps_end;                          /* of more than `most` the last are kept; 0: fail */
    void (*failed)(struct mull__output *o); /* once, when `status` is no longer 0 */
    int status;                             /* MULL_ETOOBIG; MULL_ENOMEM; 0: nothing is missing */
    char *bytes;
    size_t used, room;
    uv_pipe_t pipe;
} mull__output;

/* mull__output_open makes a pipe, reads one end of it, and gives the other, which the caller
 * closes. The handle `pipe` is open from then on, also after a failure: libuv's code. */
int mull__output_open(mull__output *o, uv_loop_t *loop, int *write_end);

/* mull__output_drain takes what is in the pipe now, and reads no more. Whoever else has its other
 * end may keep that open for good. */
void mull__output_drain(mull__output *o);

/* mull__output_text gives what was kept, which isn't ended by a NUL. */
const char *mull__output_text(const mull__output *o, size_t *size);

#endif
