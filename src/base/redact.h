/* redact.h: texts that may hold a URL, without its credentials. */
#ifndef MULL__REDACT_H
#define MULL__REDACT_H

#include <stddef.h>

/* mull__redact copies `text` to `out`, cut to `size` bytes, with "***" for the user part of `url`:
 * what it has between the first "//" and the last '@'. As much of that as stands behind a "//" of
 * the text counts, since the text may hold a part of the URL only. */
void mull__redact(char *out, size_t size, const char *text, const char *url);

#endif
