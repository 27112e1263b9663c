/* rare.h: functions that are seldom called out of ones that often are: kept out of them, so that
 * their needs (registers, room on the stack) aren't everybody's. */
#ifndef MULL__RARE_H
#define MULL__RARE_H

#define MULL__RARE __attribute__((noinline, cold))

#endif
