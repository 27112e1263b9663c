/* seeds.h: what a simulator is asked for on its command line: which seeds, and how much of them is
 * told. The programs simulate and simulate_amqp share it.
 *
 *   simulate [--seeds FIRST-LAST]    each of them once; 1-1000
 *   simulate --seed N [--trace]      one, and the hash of all that happened
 *   simulate --twice FIRST-LAST      each twice: it must be the same
 */
#ifndef SEEDS_H
#define SEEDS_H

#include "kernel.h"

#include <inttypes.h>
#include <stdio.h>

typedef struct seeds_program {
    const char *name;
    void (*run)(uint64_t seed, int tell); /* ends the program where something is wrong */
    void (*show_totals)(void);
    const kernel *kernel; /* of the seed that runs, or ran last */
} seeds_program;

/* seeds_main gives what main gives: 2 where it is asked for nothing that it knows, 1 at a seed that
 * isn't the same a second time. A program that fails says in which seed, and how to see it again.
 */
int seeds_main(const seeds_program *program, int count, char **words);

/* SEEDS_MAIN is the main of a simulator whose sim.h has `sim`, `totals`, COUNTED and `simulate`. */
#define SEEDS_SHOW(count) printf("%s %" PRIu64 "\n", #count, sums.count);
#define SEEDS_MAIN(title)                                                                          \
    static sim the_sim;                                                                            \
    static totals sums;                                                                            \
    static void run(uint64_t seed, int tell)                                                       \
    {                                                                                              \
        simulate(&the_sim, seed, &sums, tell);                                                     \
    }                                                                                              \
    static void show_totals(void)                                                                  \
    {                                                                                              \
        COUNTED(SEEDS_SHOW)                                                                        \
    }                                                                                              \
    int main(int count, char **words)                                                              \
    {                                                                                              \
        const seeds_program program = {title, run, show_totals, &the_sim.k};                       \
        return seeds_main(&program, count, words);                                                 \
    }

#endif
