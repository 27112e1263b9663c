/* msgpack_write.h: writes MessagePack. */
#ifndef MULL__MSGPACK_WRITE_H
#define MULL__MSGPACK_WRITE_H

#include "mulligan.h"

/* mull__msgpack grows as it is written; begun zeroed but for its allocator. `memory` is freed by
 * mull__free. Once there is no memory, `status` is MULL_ENOMEM and nothing more is written. */
typedef struct mull__msgpack {
    const mull_allocator *allocator;
    char *memory;
    size_t size, room;
    int status;
} mull__msgpack;

/* mull__msgpack_room gives the place of the next `size` bytes, which belong to it once `size` says
 * so; NULL: there is no memory. */
char *mull__msgpack_room(mull__msgpack *out, size_t size);

/* mull__msgpack_raw adds what is MessagePack already. */
void mull__msgpack_raw(mull__msgpack *out, const void *bytes, size_t size);

void mull__msgpack_nil(mull__msgpack *out);
void mull__msgpack_flag(mull__msgpack *out, int is);
void mull__msgpack_number(mull__msgpack *out, double number);
void mull__msgpack_integer(mull__msgpack *out, int64_t number);
void mull__msgpack_bytes(mull__msgpack *out, const void *bytes, size_t size);
void mull__msgpack_string(mull__msgpack *out, const char *text, size_t size);

/* mull__msgpack_begin begins a list or map whose length isn't known yet; mull__msgpack_end says how
 * many items or entries there were since. */
size_t mull__msgpack_begin(mull__msgpack *out, int is_map);
void mull__msgpack_end(mull__msgpack *out, size_t begun, uint32_t count);

/* mull__msgpack_items begins a list of `count` items, mull__msgpack_entries a map. At most 15. */
void mull__msgpack_items(mull__msgpack *out, unsigned count);
void mull__msgpack_entries(mull__msgpack *out, unsigned count);

/* ---- Into room that is there ----------------------------------------------------------------- */

/* MULL__MSGPACK_HEAD: what a value takes at most, beside the bytes of a text. */
enum { MULL__MSGPACK_HEAD = 9 };

/* Each writes a value at `to`, and gives where it ends. */
char *mull__msgpack_put_integer(char *to, int64_t number);
char *mull__msgpack_put_string(char *to, const char *text, size_t size);

#endif
