/* socket_path.h: a socket in the file system, for its owner alone; see listener.h. */
#ifndef MULL__NET_SOCKET_PATH_H
#define MULL__NET_SOCKET_PATH_H

#include <sys/types.h>
#include <sys/un.h>

/* mull__socket_path is where a socket is, and which it is. */
typedef struct mull__socket_path {
    struct sockaddr_un address;
    dev_t device;
    ino_t inode;
} mull__socket_path;

/* mull__socket_path_listen gives a descriptor that listens; errors as mull__listener_open. */
int mull__socket_path_listen(mull__socket_path *socket, const char *path, int *fd, char *why,
                             size_t size);

/* mull__socket_path_remove takes it away, unless another one is there by now. */
void mull__socket_path_remove(const mull__socket_path *socket);

#endif
