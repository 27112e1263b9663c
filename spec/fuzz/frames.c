/* frames.c: whatever a client sends, a session takes it or ends: cut anywhere it comes to the same;
 * what it writes are whole messages; and what the scanner finds whole, msgpack-c reads as well, to
 * the same byte. The first byte says where the bytes are cut, and whether the hello was there. */
#include "base/alloc.h"
#include "control/decisions.h"
#include "fuzz.h"
#include "wire/rpc.h"

#include <msgpack.h>
#include <string.h>

enum { HELLO_SIZE = 33 };

static const char hello[] = "\x94\x00\x00\xa5hello\x91\x82\xa7version\x01\xa4role\xa7"
                            "decider";

static const char text[] =
    "local policy = require 'mulligan.policy'\n"
    "local bus = policy.bus()\n"
    "bus:on('HttpError', { status = policy.between(500, 599) }):retry(3):then_redeliver(2, '2s')\n"
    "bus:default():retry():then_redeliver():then_dead_letter()\n";

/* Lua's part is not at work here: it says no to all. */
static int refuse(void *data, const char *what, const char *json, mull__json_text *answer,
                  char *why)
{
    (void)data;
    (void)answer;
    expect(what[0] != 0 && json[0] != 0, "nothing was asked");
    snprintf(why, MULL__SESSION_WHY, "no");
    return MULL_EINVAL;
}

static mull__decisions decisions;

static void set_up(void)
{
    mull_policy_options options = MULL_INIT(mull_policy_options);
    options.text = text;
    expect(mull_policy_load(&decisions.policy, &options) == 0, "no policy");
    expect(mull_decider_new(&decisions.decider, decisions.policy) == 0, "no decider");
    decisions.allocator = mull__allocator_or_default((mull_allocator){NULL, NULL});
    decisions.arena.allocator = decisions.allocator;
    decisions.ask = refuse;
}

/* play feeds all of it, so many bytes at a time, and gives what was answered; yours to free. */
static char *play(const char *bytes, size_t size, size_t step, int is_open, size_t *answered)
{
    mull__session session;
    char begin[HELLO_SIZE], *have = malloc(size + 1);
    size_t done = 0, come = 0;
    mull__session_begin(&session, &mull__decisions_session, &decisions, &decisions.allocator, 0);
    if (is_open) {
        memcpy(begin, hello, HELLO_SIZE);
        expect(mull__session_feed(&session, begin, HELLO_SIZE, 1) == HELLO_SIZE, "no hello");
        expect(session.state == MULL__SESSION_OPENED, "the hello was refused");
    }
    memcpy(have, bytes, size);
    while (come < size && session.state != MULL__SESSION_ENDED) {
        come = size - come < step ? size : come + step;
        for (size_t taken = 1; taken > 0 && done < come; done += taken) {
            taken = mull__session_feed(&session, have + done, come - done, 1);
            mull__session_sent(&session);
        }
    }
    free(have);
    *answered = session.out.size;
    return session.out.memory;
}

static void check_answers(const char *bytes, size_t size)
{
    mull__msgpack_progress progress = {0};
    while (size > 0) {
        expect(mull__msgpack_scan(&progress, bytes, size, MULL__SESSION_FRAME + 64) == 1,
               "an answer isn't whole");
        expect(*bytes == (char)0x94, "an answer is no list of four");
        bytes += progress.at;
        size -= progress.at;
        progress = (mull__msgpack_progress){0};
    }
}

static void check_scan(const char *bytes, size_t size)
{
    mull__msgpack_progress progress = {0};
    int found = mull__msgpack_scan(&progress, bytes, size, 1 << 20);
    if (found == 0)
        return;
    msgpack_unpacked theirs;
    size_t end = 0;
    msgpack_unpacked_init(&theirs);
    if (found == 1) {
        msgpack_unpack_return answer = msgpack_unpack_next(&theirs, bytes, size, &end);
        expect(answer == MSGPACK_UNPACK_SUCCESS, "msgpack-c can't read what is whole");
        expect(end == progress.at, "msgpack-c finds another end");
    }
    msgpack_unpacked_destroy(&theirs);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t whole_size, cut_size;
    if (!decisions.policy)
        set_up();
    if (size < 2)
        return 0;
    const char *bytes = (const char *)data + 1;
    int is_open = data[0] & 1;
    check_scan(bytes, size - 1);
    char *whole = play(bytes, size - 1, size, is_open, &whole_size);
    char *cut = play(bytes, size - 1, (size_t)data[0] / 2 % 16 + 1, is_open, &cut_size);
    expect(whole_size == cut_size && (!whole_size || memcmp(whole, cut, whole_size) == 0),
           "cut elsewhere, something else is answered");
    check_answers(whole, whole_size);
    free(whole);
    free(cut);
    return 0;
}
