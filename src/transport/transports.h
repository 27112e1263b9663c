/* transports.h: which transports there are. */
#ifndef MULL__TRANSPORTS_H
#define MULL__TRANSPORTS_H

#include "mulligan/transport.h"

/* mull__has_scheme says whether a URL begins with a scheme, without its colon, and a colon. */
int mull__has_scheme(const char *url, const char *scheme);

/* mull__transport_for gives the transport of a URL by its scheme; NULL: there is none. */
const mull_transport_ops *mull__transport_for(const char *url);

/* mull__transport_schemes writes what a URL may begin with, for error messages: "memory:, sqlite:",
 * cut off where it doesn't fit. */
void mull__transport_schemes(char *text, size_t size);

/* mull__transport_is_later says whether a URL's scheme is one that only later versions have. */
int mull__transport_is_later(const char *url);

/* mull__transport_unknown writes what is wrong with a URL for whose scheme there is no transport;
 * `more` is what is known besides, each with a comma before it, such as ", spool:". */
void mull__transport_unknown(const char *url, const char *more, char *why, size_t size);

#endif
