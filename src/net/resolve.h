/* resolve.h: the addresses of a host. The C library's lookup blocks and can't be interrupted, so
 * that it has a thread of its own, which is left to itself where nobody waits for it any more:
 * neither the loop nor its end waits for a name server. */
#ifndef MULL__NET_RESOLVE_H
#define MULL__NET_RESOLVE_H

#include <netdb.h>
#include <uv.h>

/* mull__resolve is a lookup under way. */
typedef struct mull__resolve mull__resolve;

/* mull__resolve_number gives the one address that is written as a number, without a lookup; NULL:
 * `host` is a name, or wrong. Freed by freeaddrinfo. */
struct addrinfo *mull__resolve_number(const char *host, const char *port);

/* mull__resolve_begin looks a name up, and rings `async` when that is done. NULL: no memory, or no
 * thread. */
mull__resolve *mull__resolve_begin(const char *host, const char *port, uv_async_t *async);

/* mull__resolve_end asks for the result, and frees the lookup: 0, and `list`, which is freed by
 * freeaddrinfo; or an error of getaddrinfo. EAI_INPROGRESS: it isn't done, nothing was freed. */
int mull__resolve_end(mull__resolve *resolve, struct addrinfo **list);

/* mull__resolve_forget: nobody waits; `async` isn't touched any more. */
void mull__resolve_forget(mull__resolve *resolve);

#endif
