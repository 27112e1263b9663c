/* amqp.c: whatever a server of AMQP sends, the session takes it or ends: cut anywhere it comes to
 * the same; no body is longer than was said; and of each message whose properties are sound, a copy
 * can be made that is sound as well, or is refused. The first byte says where it begins: before the
 * login, or with two channels open. */
#include "base/alloc.h"
#include "base/hash.h"
#include "fuzz.h"
#include "transport/amqp/message.h"
#include "transport/amqp/session.h"
#include "transport/amqp/sound.h"

#include <string.h>

typedef struct run {
    mull__amqp_session session;
    mull__digest digest; /* of all that happened */
    char *body;
    size_t written;
} run;

static void note(run *r, const void *bytes, size_t size)
{
    mull__digest_add(&r->digest, bytes, size);
}

static int on_write(void *data, const void *bytes, size_t size)
{
    run *r = data;
    note(r, bytes, size);
    r->written += size;
    return 0;
}

static void on_open(void *data)
{
    run *r = data;
    note(r, "open", 4);
    mull__amqp_channel_open(&r->session, 1);
    mull__amqp_channel_open(&r->session, 2);
}

static void on_method(void *data, uint16_t channel, amqp_method_number_t id, void *decoded)
{
    run *r = data;
    (void)decoded;
    note(r, &channel, sizeof channel);
    note(r, &id, sizeof id);
    if (id == AMQP_CHANNEL_CLOSE_METHOD)
        mull__amqp_channel_open(&r->session, channel);
}

/* copy makes a copy of a message that was read, as a redelivery does, and reads that. */
static void copy(run *r, amqp_basic_properties_t *properties)
{
    static const mull_header ours[] = {{"mulligan-calls", "1"}};
    mull_settlement settlement = {.id = "given", .ours = ours, .our_count = 1};
    static char room[MULL__AMQP_FRAME_MAX * 2];
    amqp_pool_t pool;
    const char *why;
    init_amqp_pool(&pool, 4096);
    int status = mull__amqp_properties_copied(properties, &pool, &settlement, "guest",
                                              (mull__amqp_delay){5, 2}, 512, &why);
    int size = status != 0 ? -1
                           : amqp_encode_properties(AMQP_BASIC_CLASS, properties,
                                                    (amqp_bytes_t){sizeof room, room});
    expect(status != 0 || size > 0, "a copy can't be encoded");
    expect(size < 0 || mull__amqp_properties_sound(room, (size_t)size), "a copy isn't sound");
    note(r, room, size > 0 ? (size_t)size : 0);
    empty_amqp_pool(&pool);
}

static void on_begin(void *data, mull__amqp_content *content)
{
    run *r = data;
    void *decoded = NULL;
    amqp_pool_t pool;
    amqp_bytes_t raw = {content->properties_size, (void *)(uintptr_t)content->properties};
    expect(content->body_size <= MULL__AMQP_BODY_MAX, "a body is too long");
    content->room = content->body_size < 16 ? (size_t)content->body_size : 16;
    content->body = r->body = realloc(r->body, content->room + 1);
    init_amqp_pool(&pool, 4096);
    if (mull__amqp_properties_sound(raw.bytes, raw.len)) {
        int status = amqp_decode_properties(AMQP_BASIC_CLASS, &pool, raw, &decoded);
        expect(status == AMQP_STATUS_OK, "what is sound can't be decoded");
        mull_message message = {0};
        mull__block block = {0};
        const char *why = mull__amqp_message_read(&block, &message, decoded);
        size_t counted = block.used;
        char *memory = malloc(counted + 1);
        block = (mull__block){memory, 0};
        message = (mull_message){0};
        expect(mull__amqp_message_read(&block, &message, decoded) == why, "it reads differently");
        expect(block.used == counted, "it was counted wrongly");
        for (size_t i = 0; i < message.header_count; i++)
            note(r, message.headers[i].value, strlen(message.headers[i].value));
        free(memory);
        copy(r, decoded);
    }
    empty_amqp_pool(&pool);
}

static int on_more(void *data, mull__amqp_content *content, size_t wanted)
{
    run *r = data;
    expect(wanted <= content->body_size, "a body is longer than was said");
    content->body = r->body = realloc(r->body, wanted + 1);
    content->room = wanted;
    return 0;
}

static void on_end(void *data, mull__amqp_content *content)
{
    note(data, content->body, (size_t)content->body_size);
}

static void on_blocked(void *data, const char *reason)
{
    note(data, reason ? reason : "", reason ? strlen(reason) : 0);
}

static const mull__amqp_calls calls = {on_write, on_open, on_method, on_begin,
                                       on_more,  on_end,  on_blocked};

/* play feeds all of it in pieces, and gives the hash of what came of it. */
static void play(const char *bytes, size_t size, int is_open, size_t step, char hex[33])
{
    static const mull__amqp_login login = {
        .user = "guest", .password = "secret", .vhost = "/", .name = "fuzz", .heartbeat_s = 60};
    mull_allocator allocator = mull__allocator_or_default((mull_allocator){0});
    static run r;
    memset(&r, 0, sizeof r);
    mull__digest_begin(&r.digest);
    expect(mull__amqp_session_init(&r.session, &allocator, &calls, &r, &login) == 0, "no memory");
    mull__amqp_session_begin(&r.session);
    if (is_open) {
        r.session.state = MULL__AMQP_OPEN;
        r.session.channel_max = MULL__AMQP_CHANNEL_MAX;
        on_open(&r);
    }
    for (size_t at = 0; at < size; at += step) {
        size_t piece = size - at < step ? size - at : step;
        char *exact = malloc(piece);
        memcpy(exact, bytes + at, piece);
        int status = mull__amqp_session_feed(&r.session, exact, piece);
        free(exact);
        if (status != 0)
            break;
    }
    note(&r, r.session.why, strlen(r.session.why));
    mull__digest_end(&r.digest, hex);
    mull__amqp_session_free(&r.session);
    free(r.body);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char whole[33], cut[33];
    if (size < 2)
        return 0;
    int is_open = data[0] & 1;
    const char *bytes = (const char *)data + 2;
    play(bytes, size - 2, is_open, size, whole);
    play(bytes, size - 2, is_open, (size_t)data[1] % 32 + 1, cut);
    /* How an answer of the wrong kind begins is shown as far as it has come. */
    if (is_open || data[2 < size ? 2 : 0] == AMQP_FRAME_METHOD)
        expect(strcmp(whole, cut) == 0, "cut elsewhere, something else comes of it");
    return 0;
}
