/* message.h: AMQP's properties and mulligan's messages: what is read from the ones into the others,
 * and what a copy's are. docs/transports/amqp.md has the list. */
#ifndef MULL__AMQP_MESSAGE_H
#define MULL__AMQP_MESSAGE_H

#include "base/block.h"
#include "mulligan/transport.h"

#include <amqp.h>
#include <amqp_framing.h>

/* Headers of the transport's own. No handler sees them, no copy keeps them but for the key. */
#define MULL__AMQP_KEY        "mulligan.key"
#define MULL__AMQP_DELAY_BIT  "mulligan.delay."
#define MULL__AMQP_BIT_FORMAT MULL__AMQP_DELAY_BIT "%d"

enum {
    MULL__AMQP_SEEN_MAX = 1000, /* headers of a message that mulligan sees; others are kept */
    MULL__AMQP_LEVELS = 30      /* of delays, see delays.h */
};

/* mull__amqp_message_read says what mulligan sees of a message, laid out in `block` (twice, see
 * base/block.h). Why it can't be understood; NULL: it is. */
const char *mull__amqp_message_read(mull__block *block, mull_message *message,
                                    const amqp_basic_properties_t *properties);

/* mull__amqp_deliveries is how often the broker has handed a message out, this one included. */
int64_t mull__amqp_deliveries(const amqp_basic_properties_t *properties, int redelivered);

/* mull__amqp_delay is a delay of so many steps, which begins at a level. No steps: none. */
typedef struct mull__amqp_delay {
    uint64_t steps;
    int level;
} mull__amqp_delay;

/* mull__amqp_properties_new gives the properties of a message that is published. Its texts are
 * borrowed from the message, all else is the pool's. MULL_EREFUSED: `why` says what is too long.
 * MULL_ENOMEM. */
int mull__amqp_properties_new(amqp_basic_properties_t *properties, amqp_pool_t *pool,
                              const mull_message *message, mull__amqp_delay delay,
                              const char **why);

/* mull__amqp_properties_copied makes the properties that a message came with those of its copy, for
 * a settlement. What a broker acts on is left out; `user` is whom it knows us by. Of `ours`, those
 * with a value of `shorter_than` bytes or more are left out, and those with a name that AMQP can't
 * have. As the last. */
int mull__amqp_properties_copied(amqp_basic_properties_t *properties, amqp_pool_t *pool,
                                 const mull_settlement *settlement, const char *user,
                                 mull__amqp_delay delay, size_t shorter_than, const char **why);

#endif
