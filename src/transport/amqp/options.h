/* options.h: what a URL of AMQP says. docs/transports/amqp.md is the manual. */
#ifndef MULL__AMQP_OPTIONS_H
#define MULL__AMQP_OPTIONS_H

#include "mulligan/transport.h"
#include "net/url.h"

#include <stdint.h>

enum {
    MULL__AMQP_DELAY_STEP_MS = 50,
    MULL__AMQP_MINUTE_MS = 60 * 1000,
    MULL__AMQP_CLAIM_MS = 30 * MULL__AMQP_MINUTE_MS /* consumer_timeout, where nobody has set it */
};

#define MULL__AMQP_LONGEST_MS (INT64_C(365) * 24 * 60 * MULL__AMQP_MINUTE_MS)

typedef struct mull__amqp_options {
    mull__url url; /* its texts are lent to all that follows */
    int uses_tls;
    mull__tls_options tls;
    const char *user, *password, *vhost, *name; /* a user that no message can name, if `external` */
    int external;                               /* the certificate is the login */
    int declare, classic;
    int type_is_asked;    /* the URL says which */
    int64_t claim_ms;     /* 0: none */
    int64_t heartbeat_ms; /* 0: none */
    int64_t connect_ms;
} mull__amqp_options;

/* mull__amqp_options_read: MULL_EINVAL: `why` says what is wrong and what would be right, without a
 * secret. MULL_ENOMEM. After an error there is nothing to free. */
int mull__amqp_options_read(mull__amqp_options *options, const mull_allocator *allocator,
                            const char *url, char *why, size_t why_size);
void mull__amqp_options_free(mull__amqp_options *options);

/* mull__amqp_promise writes what always holds of a queue of such a URL. */
void mull__amqp_promise(mull_abilities *floor, const mull__amqp_options *options);

#endif
