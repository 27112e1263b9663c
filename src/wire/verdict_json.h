/* verdict_json.h: a verdict as a line of `mulligan decide`. */
#ifndef MULL__VERDICT_JSON_H
#define MULL__VERDICT_JSON_H

#include "json_write.h"

/* mull__verdict_to_json adds every key, in the order that cli.md has, with a NUL behind it that
 * isn't counted. MULL_ENOMEM; MULL_EINVAL: the name of a file isn't UTF-8. */
int mull__verdict_to_json(mull__json_text *out, const mull_verdict *verdict);

#endif
