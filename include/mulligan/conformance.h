/* mulligan/conformance.h: the rules of mulligan/transport.h, each as a case that a transport passes
 * or fails. It is no part of the library: its source is installed as share/mulligan/conformance.c,
 * with a header beside it, to be compiled by whoever writes a transport.
 *
 *   cc -DMULL_CONFORMANCE_MAIN -DMULL_CONFORMANCE_OPS=spool_transport -o conformance
 *       PREFIX/share/mulligan/conformance.c spool.c $(pkg-config --cflags --libs mulligan libuv)
 *   ./conformance 'spool:/tmp/places/{}'
 *
 * makes a program that prints TAP; {} becomes the number of the case, so that each has an empty
 * place of its own. It gives the ops no data: a transport that needs mull_port_data is tested by a
 * program of its own, as examples/board/conforms.c. Without MULL_CONFORMANCE_OPS it tests what the
 * library has for the URL: a transport that is built in, or a module.
 *
 * How it works: a real engine has the transport, through a table of the suite's own, which passes
 * on what the engine asks and keeps each settlement for the case, which asks what it likes in its
 * place. So each kind of settlement is asked, those too that the engine asks seldom.
 *
 * What can be seen through an engine alone is tested in Lua, in mulligan's own tree
 * (spec/transport/conformance.lua): faults, retries, stops, and many messages at once.
 */
#ifndef MULLIGAN_CONFORMANCE_H
#define MULLIGAN_CONFORMANCE_H

#include "transport.h"

#ifdef __cplusplus
extern "C" {
#endif

/* mull_conformance_end is how a case ended. */
typedef enum mull_conformance_end {
    MULL_CONFORMANCE_FAILED,
    MULL_CONFORMANCE_PASSED,
    MULL_CONFORMANCE_SKIPPED /* the transport doesn't promise what the case is about */
} mull_conformance_end;

/* mull_conformance_options says what is tested. Hooks may be NULL; cases that need them are then
 * skipped. Each is called between two turns of the loop, on its thread. */
typedef struct mull_conformance_options {
    size_t size;
    const mull_transport_ops *ops; /* NULL: what the library has for the URL */
    void *ops_data;                /* as of mull_engine_scheme */
    void *data;                    /* for all the functions below */

    /* fresh writes the URL of an empty place, and may set `ops_data` anew. It is called once for
     * each case, when nothing of the last one is open. 0: it did; else the case fails. The cases
     * use the queues conformance, conformance-next and conformance-dead. */
    int (*fresh)(void *data, char *url, size_t size);

    /* report is told of each case, in order. `text`: why it failed or was skipped; else "". */
    void (*report)(void *data, const char *name, mull_conformance_end end, const char *text);

    void (*cut)(void *data);        /* the connection breaks, and none can be made */
    void (*come_back)(void *data);  /* it can be made again */
    void (*break_down)(void *data); /* the place is gone for good */

    int forgets;   /* what isn't settled is gone when the transport closes */
    int uncounts;  /* a close can give back claims uncounted, and does; else their owner died */
    int tail;      /* what is given back at once goes to the end of its queue */
    int real_time; /* it goes by a clock of its own, a broker's, or has connections that
                      mull_port_working doesn't count: the cases wait in real time. 0: a test's
                      clock goes forward by itself */
} mull_conformance_options;

/* mull_conformance runs all cases, one after the other, and gives how many failed; MULL_EINVAL:
 * `fresh` or `report` is missing, or `size` isn't set. One at a time in a process. */
int mull_conformance(const mull_conformance_options *options);

#ifdef __cplusplus
}
#endif

#endif
