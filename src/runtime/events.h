/* events.h: who hears of events: the embedder at once, and then the policy's own `notify`.
 *
 *   while a failure is judged ──> pending at its delivery ──┐
 *   the verdict is carried out ──> event function ──────────┴──> notify
 *   the engine starts ──────────────┐
 *   a reload ends, on any thread ───┴──> policy events ── the loop drains them ──> notify
 *
 * A notify is called in the seat that the verdict came from, on the loop's thread. It can't change
 * anything; what it fails at is told to the embedder alone. */
#ifndef MULL__EVENTS_H
#define MULL__EVENTS_H

#include "state.h"

/* mull__failure_of states a delivery's last failure as facts. */
void mull__failure_of(const mull__delivery *d, mull_failure *failure);

/* mull__events_begin comes before a delivery is judged: the notify in force then hears of it. */
void mull__events_begin(mull__delivery *d);

/* mull__event_tell tells of a delivery: the embedder's event function first, then notify, which
 * hears before that of what is pending. */
void mull__event_tell(mull__delivery *d, const mull_event *event);
void mull__event_decided(mull__delivery *d);                          /* of its verdict */
void mull__event_header_ignored(mull__delivery *d, const char *name); /* before it is judged */

/* mull__events_end tells notify what is pending, where no event came of it. */
void mull__events_end(mull__delivery *d);

/* What became of a reload: added on any thread, told when the loop drains. */
void mull__policy_event_add(void *engine, const mull_event *event);
void mull__policy_event_of_start(mull_engine *engine);
void mull__policy_events_tell(mull_engine *engine);

void mull__events_open(mull_engine *engine); /* once it has its decider */
void mull__events_close(mull_engine *engine);

#endif
