/* questions.h: what a transport was asked and hasn't answered yet, and what it answered from within
 * the slot that asked. */
#ifndef MULL__QUESTIONS_H
#define MULL__QUESTIONS_H

#include "engine_state.h"

/* How long it is waited for an answer, before somebody is told. */
enum { MULL__ANSWER_MS = 60000 };

/* mull__asker is who asked. `answered` ends the question. */
struct mull__asker {
    void (*answered)(mull__question *question, int status, const char *why);
    void (*unanswered)(mull__question *question); /* for MULL__ANSWER_MS: told once */
};

/* mull__question_ask gives a question its ticket. The slot is called between this and
 * mull__question_asked, and what it answers meanwhile is kept. What the transport was asked is
 * flushed at the end of the turn. */
mull_ticket mull__question_ask(mull_port *port, mull__question *question, mull__ticket_kind kind,
                               const mull__asker *asker);

/* mull__question_asked: the slot has returned; from now on its answer is waited for, unless it was
 * given. */
void mull__question_asked(mull__question *question);

/* mull__question_answered tells who asked: now, or on the next turn where the slot is at it still.
 * Without memory for a kept answer's `why` it has none. */
void mull__question_answered(mull__question *question, int status, const char *why);

/* mull__answers_take tells of the answers that were kept until now. */
void mull__answers_take(mull_engine *engine);

/* mull__question_drop: no answer is waited for any more. One that comes still finds its ticket. */
void mull__question_drop(mull_engine *engine, mull__question *question);

/* mull__question_end: it was answered, or no answer counts any more. Ended already: nothing. */
void mull__question_end(mull_engine *engine, mull__question *question);

#endif
