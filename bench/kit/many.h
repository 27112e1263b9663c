/* many.h: decisions by ids where many types take turns in no order, each with a rule of its own. */
#ifndef BENCH_MANY_H
#define BENCH_MANY_H

/* bench_many prints, for ever more types, what a decision takes: time, beside that with 10 types,
 * and instructions and misses of the first cache, as callgrind simulates it. Below 0: no policy, or
 * no decision. `program` is this one, for which `argv[1]` is "many". */
int bench_many(const char *program);

/* bench_many_once decides `count` times among so many types, for callgrind. */
int bench_many_once(int types, long count);

#endif
