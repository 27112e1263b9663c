/* msgpack_json.h: between JSON and MessagePack, for what few ask for and Lua answers. */
#ifndef MULL__MSGPACK_JSON_H
#define MULL__MSGPACK_JSON_H

#include "json_write.h"
#include "msgpack_write.h"

/* mull__value_to_json adds a value as JSON, with a NUL behind it that isn't counted. MULL_EINVAL: a
 * number that JSON can't say; MULL_ENOMEM. */
int mull__value_to_json(mull__json_text *out, const mull_value *value);

/* mull__json_to_msgpack adds a JSON text of `size` bytes, behind which a NUL stands. MULL_EINVAL:
 * it is none; MULL_ENOMEM. */
int mull__json_to_msgpack(mull__msgpack *out, const char *text, size_t size);

#endif
