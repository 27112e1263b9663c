/* redact.h: texts that may hold a URL, without its credentials. */
#ifndef MULL__REDACT_H
#define MULL__REDACT_H

#include <stddef.h>

/* mull__redact copies `text` to `out`, cut to `size` bytes, with "***" for the user part of `url`:
 * what it has between its first ':' or "//", with the slashes there, and its last '@'. A `sqlite:`
 * without "//" has none. The text may hold a piece of the URL only, so a beginning of the user part
 * counts as well, behind what it has in front of it. */
void mull__redact(char *out, size_t size, const char *text, const char *url);

#endif
