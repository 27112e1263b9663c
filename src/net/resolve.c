/* resolve.c: see resolve.h. Its memory is the C library's: the thread may outlive the embedder's
 * allocator. */
#include "resolve.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

struct mull__resolve {
    pthread_mutex_t mutex;
    uv_async_t *async; /* NULL: forgotten */
    int done;
    int status;
    struct addrinfo *list;
    const char *port;
    char host[];
};

static const struct addrinfo hints = {
    .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV};

struct addrinfo *mull__resolve_number(const char *host, const char *port)
{
    struct addrinfo *list, numeric = hints;
    numeric.ai_flags |= AI_NUMERICHOST;
    return getaddrinfo(host, port, &numeric, &list) == 0 ? list : NULL;
}

static void resolve_free(mull__resolve *resolve)
{
    if (resolve->list)
        freeaddrinfo(resolve->list);
    pthread_mutex_destroy(&resolve->mutex);
    free(resolve);
}

static void *look_up(void *data)
{
    mull__resolve *resolve = data;
    struct addrinfo *list = NULL;
    int status = getaddrinfo(resolve->host, resolve->port, &hints, &list);
    pthread_mutex_lock(&resolve->mutex);
    resolve->status = status;
    resolve->list = status == 0 ? list : NULL;
    resolve->done = 1;
    int forgotten = !resolve->async;
    if (!forgotten)
        uv_async_send(resolve->async);
    pthread_mutex_unlock(&resolve->mutex);
    if (forgotten)
        resolve_free(resolve);
    return NULL;
}

/* start_thread starts one that no signal is handled on: handlers are the program's. */
static int start_thread(mull__resolve *resolve)
{
    pthread_t thread;
    pthread_attr_t detached;
    sigset_t all, before;
    if (pthread_attr_init(&detached) != 0)
        return -1;
    pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(&thread, &detached, look_up, resolve);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&detached);
    return error;
}

mull__resolve *mull__resolve_begin(const char *host, const char *port, uv_async_t *async)
{
    size_t host_size = strlen(host) + 1, port_size = strlen(port) + 1;
    mull__resolve *resolve = calloc(1, sizeof *resolve + host_size + port_size);
    if (!resolve)
        return NULL;
    memcpy(resolve->host, host, host_size);
    resolve->port = memcpy(resolve->host + host_size, port, port_size);
    resolve->async = async;
    pthread_mutex_init(&resolve->mutex, NULL);
    if (start_thread(resolve) != 0) {
        resolve_free(resolve);
        return NULL;
    }
    return resolve;
}

int mull__resolve_end(mull__resolve *resolve, struct addrinfo **list)
{
    pthread_mutex_lock(&resolve->mutex);
    int done = resolve->done, status = resolve->status;
    pthread_mutex_unlock(&resolve->mutex);
    if (!done)
        return EAI_INPROGRESS;
    *list = resolve->list;
    resolve->list = NULL;
    resolve_free(resolve);
    return status;
}

void mull__resolve_forget(mull__resolve *resolve)
{
    pthread_mutex_lock(&resolve->mutex);
    int done = resolve->done;
    resolve->async = NULL;
    pthread_mutex_unlock(&resolve->mutex);
    if (done)
        resolve_free(resolve);
}
