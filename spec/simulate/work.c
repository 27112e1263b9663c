/* work.c: messages are published, and handlers work on them: well or badly, at once or later, too
 * late, twice, or never unless they are told. */
#include "sim.h"

#include <stdlib.h>
#include <string.h>

/* job is a call whose handler hasn't ended it. */
typedef struct job {
    mull__link link;
    process *process;
    handout *handout;
    mull_call call;
    event *end;
} job;

/* ---- Messages -------------------------------------------------------------------------------- */

message *message_new(sim *s, origin from, int on, int queue)
{
    if (s->message_count == s->message_room) {
        s->message_room = s->message_room ? 2 * s->message_room : 64;
        message **more = realloc(s->messages, (size_t)s->message_room * sizeof *more);
        if (!more)
            violation(s, "out of memory");
        s->messages = more;
    }
    message *m = keep(s, sizeof *m);
    *m = (message){
        .number = s->message_count,
        .origin = from,
        .broker = on,
        .queue = queue,
        .big = one_in(s, 12),
    };
    static const char *const keys[] = {NULL, "k0", "k1"}, *const types[] = {NULL, "m0", "m1"},
                             *const tenants[] = {NULL, "t0", "t1"};
    m->key = keys[draw(s, 3)];
    m->type = types[draw(s, 3)];
    m->tenant = tenants[draw(s, 3)];
    if (from != FOREIGN && !one_in(s, 4))
        snprintf(m->id, sizeof m->id, "m%d", m->number);
    s->messages[s->message_count++] = m;
    return m;
}

const char *message_body(const message *m, char body[16])
{
    snprintf(body, 16, "%d", m->number);
    return body;
}

size_t message_body_size(const message *m)
{
    return m->big ? 16 : 8;
}

/* content is a message as its sender writes it. */
typedef struct content {
    mull_message message;
    mull_header headers[4];
    char body[16], value[16];
} content;

static const mull_message *write_content(content *c, const message *m)
{
    snprintf(c->value, sizeof c->value, "%d", m->number);
    c->headers[0] = (mull_header){"x-number", c->value};
    c->headers[1] = (mull_header){"x-tenant", m->tenant};
    c->message = (mull_message){.size = sizeof c->message,
                                .id = m->id[0] ? m->id : NULL,
                                .queue = queue_name(m->queue),
                                .body = message_body(m, c->body),
                                .body_size = message_body_size(m),
                                .key = m->key,
                                .type = m->type,
                                .headers = c->headers,
                                .header_count = m->tenant ? 2 : 1};
    return &c->message;
}

/* ---- Publishing ------------------------------------------------------------------------------ */

typedef struct publishing {
    process *process;
    message *message;
    int64_t asked_ms;
} publishing;

static void on_published(int status, void *data)
{
    publishing *of = data;
    process *p = of->process;
    message *m = of->message;
    not_in_slot(p);
    if (p->dead)
        return;
    p->publishes--;
    m->published = status == 0;
    note(p->sim, "message %lld is published: %lld", m->number, status, 0, 0);
    int64_t after_ms = p->sim->k.now_ms - of->asked_ms;
    p->sim->totals->expired += after_ms == EXPIRES_MS;
    if (after_ms > EXPIRES_MS)
        violation(p->sim, "it takes %d ms to say of message %d whether it is published",
                  (int)after_ms, m->number);
    if (status == 0 && !m->exists)
        violation(p->sim, "message %d is published, they say, but isn't there", m->number);
}

/* draw_delay: mostly none; 0 where the broker can't. */
static int64_t draw_delay(sim *s, const broker *b)
{
    if (!one_in(s, 5) || !b->floor.can_delay)
        return 0;
    int64_t longest_ms = b->floor.longest_delay_ms;
    return between(s, 0, longest_ms > 0 && longest_ms < 20000 ? longest_ms : 20000);
}

static void publish_by(process *p)
{
    sim *s = p->sim;
    int queue = (int)draw(s, QUEUES), on = queue % s->broker_count;
    message *m = message_new(s, PUBLISHED, on, queue);
    content c;
    publishing *of = keep(s, sizeof *of);
    *of = (publishing){p, m, s->k.now_ms};
    m->delay_ms = draw_delay(s, &s->brokers[on]);
    p->publishes++;
    uint64_t failures = s->counting_allocator.failures;
    int down = p->connections[on]->down;
    int status = mull_publish(p->engine, on ? "t1" : "t0", write_content(&c, m), m->delay_ms,
                              on_published, of);
    p->touched = 1;
    if (status != 0)
        p->publishes--;
    int possible = status == 0             ? 1
                   : status == MULL_EDOWN  ? down
                   : status == MULL_ENOMEM ? s->counting_allocator.failures > failures
                                           : status == MULL_EIO || status == MULL_ESTATE;
    if (!possible)
        violation(s, "publishing message %d, the broker being %s, gave %d", m->number,
                  down ? "down" : "up", status);
}

/* put_foreign: what another program puts there has no id, and may have been counted already. */
static void put_foreign(sim *s)
{
    static const char *const texts[] = {"0", "1", "2", "many", "-1"};
    static const int64_t numbers[] = {0, 1, 2, 0, 0};
    int queue = (int)draw(s, QUEUES);
    broker *b = &s->brokers[queue % s->broker_count];
    message *m = message_new(s, FOREIGN, b->index, queue);
    content c;
    mull_message put = *write_content(&c, m);
    uint64_t redeliveries = draw(s, 5), calls = draw(s, 5);
    size_t own = one_in(s, 2) ? 0 : (size_t)between(s, 1, 2);
    c.headers[put.header_count] = (mull_header){"mulligan-redeliveries", texts[redeliveries]};
    c.headers[put.header_count + 1] = (mull_header){"mulligan-calls", texts[calls]};
    put.header_count += own;
    copy *made = broker_put(b, m, 0, &put);
    counters *counted = &made->counters;
    if (own > 0)
        counted->redeliveries = counted->calls = numbers[redeliveries];
    if (own > 1)
        counted->calls = numbers[calls];
    made->account.begun = made->account.failed = counted->calls;
}

void work_publish(sim *s, void *none)
{
    process *p = &s->processes[draw(s, (uint64_t)s->process_count)];
    if (p->engine && !p->dead && !one_in(s, 6))
        publish_by(p);
    else
        put_foreign(s);
    if (--s->publishes_left > 0)
        at_time(s, s->k.calm || one_in(s, 2) ? 0 : between(s, 0, 3000), work_publish, none);
}

/* ---- Errors ---------------------------------------------------------------------------------- */

const mull_error *work_error(error_room *room, const failing *f)
{
    room->fields[0] = (mull_field){"code", {.kind = MULL_INTEGER, .as.integer = f->code}};
    room->error = (mull_error){.size = sizeof room->error,
                               .type = type_names[f->type],
                               .message = "it failed",
                               .fields = room->fields,
                               .field_count = f->code >= 0};
    if (f->cause >= 0) {
        room->cause = (mull_error){.size = sizeof room->cause, .type = type_names[f->cause]};
        room->error.cause = &room->cause;
    }
    return &room->error;
}

static failing draw_failing(sim *s)
{
    failing f = {.type = (int)draw(s, TYPES), .cause = -1};
    f.code = (int64_t)draw(s, 3);
    if (one_in(s, 20))
        f.type = TOO_BIG_TYPE; /* a handler may say that it can't read a message */
    if (one_in(s, 4))
        f.cause = (int)draw(s, TYPES);
    return f;
}

/* ---- Handlers -------------------------------------------------------------------------------- */

static void send_one(job *j)
{
    handout *h = j->handout;
    process *p = j->process;
    sim *s = p->sim;
    int queue = h->consumer + s->broker_count * (int)between(s, 1, 2);
    if (queue >= QUEUES)
        return;
    broker *b = h->connection->broker;
    message *m = message_new(s, SENT, b->index, queue);
    content c;
    m->delay_ms = draw_delay(s, b);
    uint64_t failures = s->counting_allocator.failures;
    int status = mull_send(p->engine, j->call, write_content(&c, m), m->delay_ms);
    if (status != MULL_ENOMEM || s->counting_allocator.failures == failures)
        model_sent(h, m, status);
}

static void send_some(job *j)
{
    sim *s = j->process->sim;
    while (draw(s, 100) < s->habits.sends)
        send_one(j);
}

static void end_twice(process *p, mull_call call)
{
    int status = mull_done(p->engine, call, NULL);
    if (status != MULL_EDONE)
        violation(p->sim, "a call that had ended was ended again: %d", status);
    p->touched = 1;
}

typedef struct again {
    process *process;
    int64_t epoch;
    mull_call call;
} again;

static void on_again(sim *s, void *data)
{
    (void)s;
    again *a = data;
    if (a->process->engine && !a->process->dead && a->process->epoch == a->epoch)
        end_twice(a->process, a->call);
}

/* careless handlers end their calls twice, at once or a while later. */
static void be_careless(process *p, mull_call call)
{
    sim *s = p->sim;
    if (one_in(s, 2))
        end_twice(p, call);
    again *a = keep(s, sizeof *a);
    *a = (again){p, p->epoch, call};
    at_time(s, between(s, 0, 3000), on_again, a);
}

static void end_job(job *j);

static void on_end(sim *s, void *data)
{
    (void)s;
    job *j = data;
    j->end = NULL;
    end_job(j);
}

static void end_later(job *j, int64_t delay_ms)
{
    if (j->end)
        j->end->fire = NULL;
    j->end = at_time(j->process->sim, delay_ms, on_end, j);
}

static void end_job(job *j)
{
    process *p = j->process;
    sim *s = p->sim;
    send_some(j);
    uint32_t fails = s->k.calm ? s->habits.fails / 2 : s->habits.fails;
    failing f = draw_failing(s);
    error_room room;
    int failed = draw(s, 100) < fails;
    uint64_t failures = s->counting_allocator.failures;
    int status = mull_done(p->engine, j->call, failed ? work_error(&room, &f) : NULL);
    p->touched = 1;
    if (status == MULL_ENOMEM && s->counting_allocator.failures > failures) {
        end_later(j, between(s, 1, 50)); /* as it says: not ended, try again */
        return;
    }
    mull__list_remove(&s->jobs, &j->link);
    if (j->end)
        j->end->fire = NULL;
    model_ended(j->handout, status, failed ? &f : NULL);
    /* The engine hasn't looked yet. */
    if (happens(s, 20))
        process_reload(p);
    if (status == 0 && j->handout->copy && happens(s, s->faults.loses))
        connection_lose(j->handout);
    if (draw(s, 100) < s->habits.careless)
        be_careless(p, j->call);
}

/* how_long: many end near their timeout, some after it. -1: not until it is told. */
static int64_t how_long(sim *s, const consumer *c)
{
    if (s->k.calm)
        return between(s, 0, 50);
    if (draw(s, 100) < s->habits.stuck)
        return -1;
    int64_t timeout_ms = c->timeout_ms == MULL_NEVER ? 300 : c->timeout_ms;
    switch (draw(s, 8)) {
    case 0:
        return timeout_ms + between(s, -1, 1);
    case 1:
        return timeout_ms + between(s, 0, 2000);
    case 2:
        return between(s, 0, one_in(s, 2) ? 5000 : 20000);
    default:
        return between(s, 0, 60);
    }
}

/* meddle: what a handler may do to its own process. */
static void meddle(process *p)
{
    sim *s = p->sim;
    if (!happens(s, 15))
        return;
    switch (draw(s, 3)) {
    case 0:
        process_stop(p);
        break;
    case 1:
        process_close(p);
        break;
    default:
        process_reload(p);
    }
}

void work_on_call(mull_engine *engine, mull_call call, const mull_message *m, void *data)
{
    consumer *c = data;
    process *p = c->process;
    sim *s = p->sim;
    if (p->dead) {
        mull_done(engine, call, NULL);
        return;
    }
    handout *h = handout_of(m);
    model_called(h, call, m);
    job *j = keep(s, sizeof *j);
    *j = (job){.process = p, .handout = h, .call = call};
    mull__list_push(&s->jobs, &j->link);
    if (happens(s, s->faults.kill_inside)) {
        process_kill(p);
        return;
    }
    send_some(j);
    if (draw(s, 100) < s->habits.at_once) {
        end_job(j);
    } else {
        int64_t after_ms = how_long(s, c);
        if (after_ms >= 0)
            end_later(j, after_ms);
    }
    meddle(p);
}

static job *job_of(process *p, mull_call call)
{
    for (mull__link *at = mull__list_first(&p->sim->jobs); at;
         at = mull__list_after(&p->sim->jobs, at)) {
        job *j = MULL__ENTRY(at, job, link);
        if (j->process == p && j->call == call)
            return j;
    }
    return NULL;
}

void work_on_cancel(mull_engine *engine, mull_call call, void *data)
{
    (void)engine;
    process *p = ((consumer *)data)->process;
    sim *s = p->sim;
    job *j = job_of(p, call);
    if (p->dead)
        return;
    if (!j)
        violation(s, "a call that had ended is cancelled");
    model_cancelled(j->handout);
    if (one_in(s, 3))
        end_job(j);
    else if (one_in(s, 2) || !j->end)
        end_later(j, one_in(s, 4) ? between(s, 0, 10000) : between(s, 0, 200));
}

void work_calm(sim *s)
{
    for (mull__link *at = mull__list_first(&s->jobs); at; at = mull__list_after(&s->jobs, at)) {
        job *j = MULL__ENTRY(at, job, link);
        if (!j->end)
            end_later(j, between(s, 0, 3000));
    }
}

void work_end_all(process *p)
{
    sim *s = p->sim;
    mull__link *next;
    for (mull__link *at = mull__list_first(&s->jobs); at; at = next) {
        job *j = MULL__ENTRY(at, job, link);
        next = mull__list_after(&s->jobs, at);
        if (j->process != p)
            continue;
        mull__list_remove(&s->jobs, at);
        if (j->end)
            j->end->fire = NULL;
        mull_done(p->engine, j->call, NULL);
    }
}
