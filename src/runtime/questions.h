/* questions.h: what a transport was asked and hasn't answered yet. */
#ifndef MULL__QUESTIONS_H
#define MULL__QUESTIONS_H

#include "engine_state.h"

/* How long it is waited for an answer, before somebody is told. */
enum { MULL__ANSWER_MS = 60000 };

/* mull__question_ask gives a question its ticket; `unanswered` is called after MULL__ANSWER_MS
 * without an answer, once. What the transport was asked is flushed at the end of the turn. */
mull_ticket mull__question_ask(mull_port *port, mull__question *question, mull__ticket_kind kind,
                               void (*unanswered)(mull__question *question));

/* mull__question_drop: no answer is waited for any more. One that comes still finds its ticket. */
void mull__question_drop(mull_engine *engine, mull__question *question);

/* mull__question_end: it was answered, or no answer counts any more. Ended already: nothing. */
void mull__question_end(mull_engine *engine, mull__question *question);

#endif
