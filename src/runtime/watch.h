/* watch.h: says when files may have changed.
 *
 *   paths ── walked ──> folders, each with a uv_fs_event: of each file, and of each link on its way
 *         └─ stat ────> a look, to compare with the next: for what no event tells
 *
 * Folders are watched, not files: a file that is replaced takes its watch away with it. */
#ifndef MULL__WATCH_H
#define MULL__WATCH_H

#include "base/list.h"
#include "mulligan.h"

#include <stdint.h>

typedef struct mull__watch {
    mull_engine *engine;
    void (*changed)(mull_engine *engine); /* on the loop's thread; often, in a burst */
    mull__list folders;
    char *paths; /* what it is aimed at: each with its NUL, and an empty one at the end; or NULL */
    char *names; /* entries of the folders that matter, in the same shape; or NULL */
    size_t names_size, names_room;
    uint64_t look; /* how the files looked when they were last looked at */
    int error;     /* why folders couldn't be watched: a code of libuv's; 0 */
} mull__watch;

void mull__watch_init(mull__watch *watch, mull_engine *engine,
                      void (*changed)(mull_engine *engine));

/* mull__watch_aim watches these paths from now on, which it owns; NULL: the same as before, by the
 * folders that they lead through now. Whatever changes after it returns is told, or seen by
 * mull__watch_moved; what can't be watched, by that alone, and the log says so. */
void mull__watch_aim(mull__watch *watch, char *paths);

/* mull__watch_is_at says whether it is aimed at these very paths. */
int mull__watch_is_at(const mull__watch *watch, const char *paths);

/* mull__watch_moved looks at the files, and says whether they look otherwise than last time. */
int mull__watch_moved(mull__watch *watch);

/* mull__watch_end closes all handles, which are gone on a later turn. */
void mull__watch_end(mull__watch *watch);

#endif
