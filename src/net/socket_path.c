/* socket_path.c: see socket_path.h. */
#include "socket_path.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "mulligan.h"

enum { BACKLOG = 128, FOLDER_MODE = 0700, SOCKET_MODE = 0600, OTHERS_WRITE = 022 };

/* report has room for what is wrong. */
typedef struct report {
    char *why;
    size_t size;
} report;

__attribute__((format(printf, 3, 4))) static int refuse(const report *to, int code,
                                                        const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(to->why, to->size, format, arguments);
    va_end(arguments);
    return code;
}

/* ---- The folder ------------------------------------------------------------------------------ */

typedef struct folder {
    char path[sizeof((struct sockaddr_un *)0)->sun_path + 1];
} folder;

static folder folder_of(const char *path)
{
    folder of = {"."};
    const char *end = strrchr(path, '/');
    if (end)
        snprintf(of.path, sizeof of.path, "%.*s", end == path ? 1 : (int)(end - path), path);
    return of;
}

static int prepare_folder(const char *path, const report *to)
{
    const folder of = folder_of(path);
    struct stat found;
    if (mkdir(of.path, FOLDER_MODE) != 0 && errno != EEXIST)
        return refuse(to, MULL_EIO, "the folder %s can't be made: %s", of.path, strerror(errno));
    if (stat(of.path, &found) != 0)
        return refuse(to, MULL_EIO, "the folder %s: %s", of.path, strerror(errno));
    if (found.st_uid != geteuid() && found.st_uid != 0)
        return refuse(to, MULL_EREFUSED,
                      "the folder %s is another user's, who could put a socket in this one's place",
                      of.path);
    if (found.st_mode & OTHERS_WRITE && !(found.st_mode & S_ISVTX))
        return refuse(to, MULL_EREFUSED,
                      "others may write to the folder %s, and could put a socket in this one's "
                      "place; chmod go-w %s",
                      of.path, of.path);
    return 0;
}

/* ---- What is there --------------------------------------------------------------------------- */

static int new_socket(void)
{
    return socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
}

/* is_stale says whether nobody listens on a socket. */
static int is_stale(const struct sockaddr_un *address)
{
    int fd = new_socket();
    int refused = fd >= 0 && connect(fd, (const struct sockaddr *)address, sizeof *address) != 0 &&
                  errno == ECONNREFUSED;
    if (fd >= 0)
        close(fd);
    return refused;
}

static int look(const struct sockaddr_un *address, const report *to)
{
    struct stat found;
    if (lstat(address->sun_path, &found) != 0)
        return errno == ENOENT ? 0 : refuse(to, MULL_EIO, "%s", strerror(errno));
    if (!S_ISSOCK(found.st_mode))
        return refuse(to, MULL_EREFUSED, "there is something that is no socket; it stays");
    return is_stale(address) ? 1
                             : refuse(to, MULL_EREFUSED,
                                      "another program listens there already; end that one, or "
                                      "name another path");
}

/* clear takes a stale socket away. */
static int clear(const struct sockaddr_un *address, const report *to)
{
    int found = look(address, to);
    if (found > 0 && unlink(address->sun_path) != 0)
        return refuse(to, MULL_EIO, "the socket that nobody listens on can't be replaced: %s",
                      strerror(errno));
    return found < 0 ? found : 0;
}

/* ---- Listening ------------------------------------------------------------------------------- */

/* begin binds with the mode that the descriptor has, so that nobody else's turn comes before it. */
static int begin(mull__socket_path *socket, int fd, const report *to)
{
    struct stat made;
    const struct sockaddr *address = (const struct sockaddr *)&socket->address;
    if (fchmod(fd, SOCKET_MODE) != 0 || bind(fd, address, sizeof socket->address) != 0 ||
        lstat(socket->address.sun_path, &made) != 0)
        return refuse(to, MULL_EIO, "%s", strerror(errno));
    socket->device = made.st_dev;
    socket->inode = made.st_ino;
    if (listen(fd, BACKLOG) == 0)
        return 0;
    int error = errno;
    mull__socket_path_remove(socket);
    return refuse(to, MULL_EIO, "%s", strerror(error));
}

static int open_socket(mull__socket_path *socket, int *fd, const report *to)
{
    *fd = new_socket();
    if (*fd < 0)
        return refuse(to, MULL_EIO, "%s", strerror(errno));
    int status = begin(socket, *fd, to);
    if (status != 0)
        close(*fd);
    return status;
}

/* replace: two programs that begin at once do so one after the other, so that the second finds
 * that the first listens. */
static int replace(mull__socket_path *socket, int *fd, const report *to)
{
    const folder of = folder_of(socket->address.sun_path);
    int lock = open(of.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int status = 0;
    if (lock < 0 || flock(lock, LOCK_EX) != 0)
        status =
            refuse(to, MULL_EIO, "the folder %s can't be locked: %s", of.path, strerror(errno));
    if (status == 0)
        status = clear(&socket->address, to);
    if (status == 0)
        status = open_socket(socket, fd, to);
    if (lock >= 0)
        close(lock);
    return status;
}

int mull__socket_path_listen(mull__socket_path *socket, const char *path, int *fd, char *why,
                             size_t size)
{
    const report to = {why, size};
    size_t length = strlen(path), most = sizeof socket->address.sun_path - 1;
    if (length == 0)
        return refuse(&to, MULL_EINVAL, "a socket needs a path");
    if (length > most)
        return refuse(&to, MULL_EINVAL, "a socket's path has at most %zu bytes, and this one %zu",
                      most, length);
    *socket = (mull__socket_path){.address.sun_family = AF_UNIX};
    memcpy(socket->address.sun_path, path, length);
    int status = prepare_folder(path, &to);
    return status == 0 ? replace(socket, fd, &to) : status;
}

void mull__socket_path_remove(const mull__socket_path *socket)
{
    struct stat found;
    const char *path = socket->address.sun_path;
    if (lstat(path, &found) == 0 && found.st_dev == socket->device && found.st_ino == socket->inode)
        unlink(path);
}
