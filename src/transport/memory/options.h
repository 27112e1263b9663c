/* options.h: what may stand behind the question mark of a memory: URL; docs/transports/memory.md
 * says what each option means. */
#ifndef MULL__MEMORY_OPTIONS_H
#define MULL__MEMORY_OPTIONS_H

#include "mulligan/transport.h"

/* Values of `settle` and `answers`, see misbehave.h. */
enum { MULL__SETTLE_WHOLE, MULL__SETTLE_HALFWAY, MULL__SETTLE_REFUSED };
enum { MULL__ANSWERS_ONCE, MULL__ANSWERS_NONE, MULL__ANSWERS_TWICE, MULL__ANSWERS_LATE };

/* `refuse` isn't here: mull__memory_refuses reads it from the URL. */
typedef struct mull__memory_options {
    int64_t claim_timeout_ms; /* 0: claims last */
    int64_t longest_delay_ms; /* 0: any */
    int64_t delay_step_ms;    /* 0: delays are exact */
    int64_t connect_ms;       /* 0: it is up at once */
    int retry, delay, hold, note, tail;
    int deliveries; /* a mull_counting */
    int depth;      /* a mull_depth_kind */
    int settle, answers;
} mull__memory_options;

/* mull__memory_options_read reads a whole URL: memory:NAME?claim_timeout=30s&retry=no&...
 * MULL_EINVAL, with what would be right in `why`. */
int mull__memory_options_read(mull__memory_options *options, const char *url, char *why,
                              size_t why_size);

mull_abilities mull__memory_abilities(const mull__memory_options *options);

/* mull__memory_refuses says whether a URL that was read has refuse=QUEUE. */
int mull__memory_refuses(const char *url, const char *queue);

#endif
