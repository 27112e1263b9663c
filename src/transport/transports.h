/* transports.h: which transports there are. */
#ifndef MULL__TRANSPORTS_H
#define MULL__TRANSPORTS_H

#include "base/module_file.h"
#include "mulligan/transport.h"

enum { MULL__SCHEME_MAX = MULL__MODULE_NAME_MAX }; /* without its colon */

/* mull__is_scheme says whether a text (NULL: it isn't) is a scheme, without its colon: as a URL's
 * is, in small letters, since URLs are compared as they are. */
int mull__is_scheme(const char *text);

/* mull__missing_slot names the first slot that a transport needs and hasn't; NULL: none. */
const char *mull__missing_slot(const mull_transport_ops *ops);

/* mull__has_scheme says whether a URL begins with a scheme, without its colon, and a colon. */
int mull__has_scheme(const char *url, const char *scheme);

/* mull__transport_for gives the transport of a URL by its scheme, which may load its module; NULL:
 * there is none, or its module can't be loaded. Any thread. */
const mull_transport_ops *mull__transport_for(const char *url);

/* mull__transport_schemes writes what a URL may begin with, for error messages: "memory:, sqlite:"
 * and so on, with those of our packages; cut off where it doesn't fit. */
void mull__transport_schemes(char *text, size_t size);

/* mull__transport_is_ours says whether a URL's scheme is one of mulligan's own: built in, a module
 * in a package of ours, or of a later version. */
int mull__transport_is_ours(const char *url);

/* mull__transport_unknown writes why mull__transport_for gave none for a URL, and what would be
 * right; `more` is what is known besides, each with a comma before it, such as ", spool:". */
void mull__transport_unknown(const char *url, const char *more, char *why, size_t size);

#endif
