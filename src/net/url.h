/* url.h: the URL of a server, or several of one kind:
 *
 *   SCHEME://[USER[:PASSWORD]@]HOST[:PORT][,HOST[:PORT]...][/PATH][?NAME=VALUE[&NAME=VALUE...]]
 *
 * A host is a name, an IPv4 address, or an IPv6 address in brackets. What can't stand for itself is
 * written %XX everywhere but in scheme, host and port. */
#ifndef MULL__NET_URL_H
#define MULL__NET_URL_H

#include "base/arena.h"
#include "link.h"

typedef struct mull__url_option {
    const char *name, *value;
} mull__url_option;

/* mull__url has its parts decoded. */
typedef struct mull__url {
    const char *scheme;          /* in small letters */
    const char *user, *password; /* NULL: none */
    const mull__link_address *addresses;
    size_t address_count; /* at least 1 */
    const char *path;     /* behind the slash; NULL: no slash. A %2F in it is a slash here */
    const mull__url_option *options; /* in their order, no name twice */
    size_t option_count;
    const char *shown; /* as it came, but for *** instead of the password: for messages */
    mull__arena arena;
} mull__url;

/* mull__url_read reads `text`; a host without a port gets `default_port`. MULL_ENOMEM; MULL_EINVAL:
 * `why` names the part that is wrong, and what would be right, and shows nothing that may be a
 * password. After an error there is nothing to free. */
int mull__url_read(mull__url *out, const mull_allocator *allocator, const char *text,
                   const char *default_port, char *why, size_t why_size);
void mull__url_free(mull__url *url);

/* mull__url_option_of gives the value of an option, NULL where it isn't there. */
const char *mull__url_option_of(const mull__url *url, const char *name);

#endif
