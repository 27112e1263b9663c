/* options.h: what may stand behind the question mark of a memory: URL. */
#ifndef MULL__MEMORY_OPTIONS_H
#define MULL__MEMORY_OPTIONS_H

#include <stddef.h>
#include <stdint.h>

typedef struct mull__memory_options {
    int64_t claim_timeout_ms;           /* 0: claims last */
    int64_t longest_delay_ms;           /* 0: any */
    int retry, delay, deliveries, hold; /* what it can do */
} mull__memory_options;

/* mull__memory_options_read reads a whole URL. MULL_EINVAL, with what would be right in `why`. */
int mull__memory_options_read(mull__memory_options *options, const char *url, char *why,
                              size_t why_size);

#endif
