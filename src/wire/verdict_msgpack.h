/* verdict_msgpack.h: a verdict as MessagePack. */
#ifndef MULL__VERDICT_MSGPACK_H
#define MULL__VERDICT_MSGPACK_H

#include "msgpack_write.h"

/* mull__verdict_to_msgpack adds a map with the keys of `mulligan decide`, every one, in its order.
 */
void mull__verdict_to_msgpack(mull__msgpack *out, const mull_verdict *verdict);

#endif
