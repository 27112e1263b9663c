/* main.c: the program simulate_amqp; see ../seeds.h for what it is asked. It ends in 1 at the first
 * seed in which something is wrong. */
#include "../seeds.h"
#include "sim.h"

SEEDS_MAIN("simulate_amqp")
