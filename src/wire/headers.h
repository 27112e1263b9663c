/*- headers.h: the `mulligan-` headers: the counters that a message carries, and the record of its
 * failure on a dead letter. cli.md's last section lists them; these it doesn't:
 *
 *   mulligan-id          the id that the engine gave a message that came without one
 *   mulligan-counting    on a dead letter that is redelivered by a consumer of a queue it was put
 *                        aside in: that queue. Without it the counters would start anew each time.
 *   mulligan-held-since  on a message whose failure a limit kept: since when its age stands still,
 *                        until it is called again and that time is added to mulligan-held
 *   mulligan-error-type  of the last failure: also on what isn't a dead letter, where the policy
 *                        may end it without another failure
 *   mulligan-due         on a redelivery longer than the transport's longest delay: when it is due.
 *                        Until then it is put off again and again, and no handler sees it.
 */
#ifndef MULL__HEADERS_H
#define MULL__HEADERS_H

#include "mulligan.h"

/* mull__header_record is what an arriving message's headers say. */
typedef struct mull__header_record {
    int64_t redeliveries;
    int64_t calls;            /* failed so far; `redeliveries` where the header is missing */
    int64_t first_failure_ms; /* wall clock; 0: none, or not to be read */
    int64_t last_failure_ms;  /* likewise */
    int64_t held_ms;          /* its age stood still for so long, */
    int64_t held_since_ms;    /* and does since then; 0: it goes on */
    const char *error_type;   /* of the last failure; NULL: it isn't known */
    int64_t due_ms;           /* wall clock; 0: at once */
    const char *given_id;     /* the mulligan-id header; NULL: none */
    int returned;             /* a dead letter back where it came from: its record is dropped */
    int aside;                /* a dead letter in another queue: its record stays */
    const char *ignored[5];   /* names of counter headers that can't be read; NULL at the end */
} mull__header_record;

void mull__record_read(mull__header_record *record, const mull_header *headers, size_t count,
                       const char *queue, int64_t now_ms);

/* mull__header_find gives the value of the first header of a name; NULL: there is none. */
const char *mull__header_find(const mull_header *headers, size_t count, const char *name);

/* mull__is_own says whether a header is one of ours. */
int mull__is_own(const char *name);

/* mull__header_values is what is to be written. Moments that are 0 are left out. */
typedef struct mull__header_values {
    int64_t redeliveries, calls;
    int64_t first_failure_ms, last_failure_ms;
    int64_t held_ms, held_since_ms;
    const char *error_type; /* of the last failure, where `error` is NULL; NULL */
    int64_t due_ms;         /* where its delay is made of several */
    const char *given_id;
    int keep_aside; /* keep the record of an earlier dead letter, counting in `queue` */
    const char *queue;
    /* for a dead letter, else `error` is NULL: */
    const mull_error *error;
    const char *consumer;
    const mull_verdict *verdict;
    const mull_header *faults; /* what others call the same, behind ours */
    size_t fault_count;        /* of these */
} mull__header_values;

/* mull__headers_write gives our headers, in one block, of a message that came with others: strings
 * of those that are kept are borrowed. All together stay under 48 KiB, and `faults` under 56 KiB:
 * long texts are cut at a character. MULL_ENOMEM. */
int mull__headers_write(mull_header **out, size_t *out_count, const mull_allocator *allocator,
                        const mull_header *came, size_t came_count,
                        const mull__header_values *stamp);

/* mull__headers_to_json writes headers as one JSON object, to be freed by mull__free.
 * MULL_ENOMEM; MULL_EINVAL: a header that isn't UTF-8. */
int mull__headers_to_json(char **out, const mull_allocator *allocator, const mull_header *headers,
                          size_t count);

#endif
