/* abilities.c: what a transport promises of a URL by its `look`, a line each, for specs and for the
 * table in docs/transports/README.md.
 *
 *   abilities URL
 */
#include "mulligan/transport.h"

#include <inttypes.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    static const char *const countings[] = {"nothing", "handouts", "deaths"};
    static const char *const depths[] = {"none", "rough", "exact"};
    char why[256] = "";
    mull_abilities can = MULL_INIT(mull_abilities);
    const mull_transport_ops *ops = argc == 2 ? mull_transport_ops_of(argv[1]) : NULL;
    if (!ops) {
        fprintf(stderr, "usage: abilities URL, of a transport that is here\n");
        return 2;
    }
    if (ops->look(argv[1], NULL, &can, why, sizeof why) != 0) {
        fprintf(stderr, "%s\n", why);
        return 1;
    }
    printf("can_retry %d\ncan_delay %d\ncan_hold %d\ncan_note %d\n", can.can_retry != 0,
           can.can_delay != 0, can.can_hold != 0, can.can_note != 0);
    printf("settles_whole %d\ncounts_at_once %d\n", can.settles_whole != 0,
           can.counts_at_once != 0);
    printf("deliveries %s\ndepth %s\n", countings[can.deliveries], depths[can.depth]);
    printf("delay_step_ms %" PRId64 "\nlongest_delay_ms %" PRId64 "\nclaim_timeout_ms %" PRId64
           "\n",
           can.delay_step_ms, can.longest_delay_ms, can.claim_timeout_ms);
    return 0;
}
