/* watch.c: see watch.h. */
#include "watch.h"

#include "base/hash.h"
#include "engine.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* As many links on the way to a file as the system itself follows. */
enum { LINKS = 40 };

/* folder is one that is watched. It lives until libuv has closed its handle. */
typedef struct folder {
    mull__link link;
    mull_engine *engine;
    mull__watch *watch; /* NULL: closing */
    uv_fs_event_t handle;
    char *path;
} folder;

/* ---- Folders --------------------------------------------------------------------------------- */

static const char *next_of(const char *text)
{
    return text + strlen(text) + 1;
}

static int matters(const mull__watch *watch, const char *entry)
{
    for (const char *name = watch->names; name && *name; name = next_of(name))
        if (strcmp(name, entry) == 0)
            return 1;
    return 0;
}

/* on_event: most of what happens in a folder is no business of ours, such as a database at work. */
static void on_event(uv_fs_event_t *handle, const char *entry, int events, int status)
{
    folder *f = handle->data;
    (void)events;
    if (f->watch && (status != 0 || !entry || matters(f->watch, entry)))
        f->watch->changed(f->engine);
}

static void on_folder_closed(uv_handle_t *handle)
{
    folder *f = handle->data;
    mull_engine *engine = f->engine;
    mull__free(&engine->allocator, f->path);
    mull__free(&engine->allocator, f);
    mull__engine_handle_closed(engine);
}

static void close_folders(mull__list *folders)
{
    for (mull__link *link; (link = mull__list_pop(folders));) {
        folder *f = MULL__ENTRY(link, folder, link);
        f->watch = NULL;
        uv_close((uv_handle_t *)&f->handle, on_folder_closed);
    }
}

static int is_watched(mull__watch *watch, const char *path)
{
    for (mull__link *link = mull__list_first(&watch->folders); link;
         link = mull__list_after(&watch->folders, link))
        if (strcmp(MULL__ENTRY(link, folder, link)->path, path) == 0)
            return 1;
    return 0;
}

/* open_folder watches one; a code of libuv's. A folder that is gone by now is no failure: the look
 * that follows sees that. */
static int open_folder(mull__watch *watch, const char *path)
{
    mull_engine *engine = watch->engine;
    folder *f = mull__zalloc(&engine->allocator, 1, sizeof *f);
    char *copy = mull__strdup(&engine->allocator, path);
    if (!f || !copy || uv_fs_event_init(engine->loop, &f->handle) != 0) {
        mull__free(&engine->allocator, f);
        mull__free(&engine->allocator, copy);
        return UV_ENOMEM;
    }
    engine->handles++;
    uv_unref((uv_handle_t *)&f->handle);
    f->engine = engine;
    f->watch = watch;
    f->handle.data = f;
    f->path = copy;
    mull__list_push(&watch->folders, &f->link);
    int error = uv_fs_event_start(&f->handle, on_event, path, 0);
    return error == UV_ENOENT || error == UV_ENOTDIR ? 0 : error;
}

/* note_name makes an entry of a folder one that matters. */
static int note_name(mull__watch *watch, const char *name)
{
    size_t size = strlen(name) + 1;
    if (matters(watch, name))
        return 0;
    if (watch->names_size + size + 1 > watch->names_room) {
        size_t room = 2 * watch->names_room + size + 64;
        char *names = mull__grow(&watch->engine->allocator, watch->names, room, 1);
        if (!names)
            return UV_ENOMEM;
        watch->names = names;
        watch->names_room = room;
    }
    memcpy(watch->names + watch->names_size, name, size);
    watch->names_size += size;
    watch->names[watch->names_size] = 0;
    return 0;
}

/* add watches a folder for one of its entries. The folder's own name matters as well: that is what
 * its end is told by. */
static void add(mull__watch *watch, const char *path, const char *entry)
{
    const char *slash = strrchr(path, '/');
    int error = note_name(watch, entry);
    if (error == 0)
        error = note_name(watch, slash ? slash + 1 : path);
    if (error == 0 && !is_watched(watch, path))
        error = open_folder(watch, path);
    if (error != 0)
        watch->error = error;
}

/* ---- Paths ----------------------------------------------------------------------------------- */

/* way is how far a walk has come: `at` is a folder without links in it, `rest` what is to follow.
 */
typedef struct way {
    char at[PATH_MAX], rest[PATH_MAX];
} way;

/* begin_at sets out on a path: from the root, or from where the walk is. 0: too long. */
static int begin_at(way *w, const char *path, const char *rest)
{
    char whole[PATH_MAX];
    int length = snprintf(whole, sizeof whole, "%s%s%s", path, *rest ? "/" : "", rest);
    if (length < 0 || (size_t)length >= sizeof whole)
        return 0;
    if (*path == '/')
        strcpy(w->at, "/");
    memcpy(w->rest, whole, (size_t)length + 1);
    return 1;
}

/* take_entry takes the next entry out of what is to follow; NULL: there is none. */
static const char *take_entry(way *w, char entry[NAME_MAX + 1])
{
    const char *from = w->rest + strspn(w->rest, "/");
    size_t length = strcspn(from, "/");
    if (length == 0 || length > NAME_MAX)
        return NULL;
    memcpy(entry, from, length);
    entry[length] = 0;
    from += length;
    from += strspn(from, "/");
    memmove(w->rest, from, strlen(from) + 1);
    return entry;
}

/* go_into makes an entry of `at` the folder to go on from. 0: too long. */
static int go_into(way *w, const char *entry)
{
    size_t length = strlen(w->at);
    const char *slash = length > 0 && w->at[length - 1] == '/' ? "" : "/";
    int more = snprintf(w->at + length, sizeof w->at - length, "%s%s", slash, entry);
    return more > 0 && (size_t)more < sizeof w->at - length;
}

/* walk goes along a path and watches what it depends on: the folder of each link on the way, that
 * of the file, and, where the way breaks off, the last one that is there. */
static void walk(mull__watch *watch, const char *path)
{
    way w = {.at = "."};
    char entry[NAME_MAX + 1], full[PATH_MAX], target[PATH_MAX];
    if (!begin_at(&w, path, ""))
        return;
    for (int links = 0; links <= LINKS && take_entry(&w, entry);) {
        memcpy(full, w.at, sizeof full);
        if (!go_into(&w, entry))
            return;
        ssize_t length = readlink(w.at, target, sizeof target - 1);
        if (length < 0 && errno == EINVAL && w.rest[0])
            continue; /* a folder */
        add(watch, full, entry);
        if (length < 0)
            return;
        target[length] = 0;
        memcpy(w.at, full, sizeof full);
        if (!begin_at(&w, target, w.rest))
            return;
        links++;
    }
}

/* look_at sums up how the files look from outside. */
static uint64_t look_at(const char *paths)
{
    uint64_t sum = 0;
    for (const char *path = paths; path && *path; path = next_of(path)) {
        struct stat found = {0};
        uint64_t error = stat(path, &found) == 0 ? 0 : (uint64_t)errno;
        const uint64_t words[] = {sum,
                                  error,
                                  (uint64_t)found.st_dev,
                                  (uint64_t)found.st_ino,
                                  (uint64_t)found.st_size,
                                  (uint64_t)found.st_mtim.tv_sec,
                                  (uint64_t)found.st_mtim.tv_nsec,
                                  (uint64_t)found.st_ctim.tv_sec,
                                  (uint64_t)found.st_ctim.tv_nsec};
        sum = mull__hash_words(words, sizeof words / sizeof words[0]);
    }
    return sum;
}

/* ---- The watch ------------------------------------------------------------------------------- */

void mull__watch_init(mull__watch *watch, mull_engine *engine, void (*changed)(mull_engine *engine))
{
    *watch = (mull__watch){.engine = engine, .changed = changed};
    mull__list_init(&watch->folders);
}

/* tell_error says once that folders can't be watched, and once that they can again. */
static void tell_error(const mull__watch *watch, int before)
{
    if (watch->error && !before)
        mull__engine_log(watch->engine, MULL_WARNING,
                         "the folders of the policy's files can't be watched (%s): the files are "
                         "looked at every few seconds instead",
                         uv_strerror(watch->error));
    else if (!watch->error && before)
        mull__engine_log(watch->engine, MULL_INFO,
                         "the folders of the policy's files are watched again");
}

void mull__watch_aim(mull__watch *watch, char *paths)
{
    mull__list old;
    int error = watch->error;
    mull__list_init(&old);
    for (mull__link *link; (link = mull__list_pop(&watch->folders));)
        mull__list_push(&old, link);
    if (paths) {
        mull__free(&watch->engine->allocator, watch->paths);
        watch->paths = paths;
    }
    watch->error = 0;
    watch->names_size = 0;
    if (watch->names)
        *watch->names = 0;
    for (const char *path = watch->paths; path && *path; path = next_of(path))
        walk(watch, path);
    /* The old ones go last, so that the system's watch on a folder that stays never ends. */
    close_folders(&old);
    watch->look = look_at(watch->paths);
    tell_error(watch, error);
}

int mull__watch_is_at(const mull__watch *watch, const char *paths)
{
    const char *mine = watch->paths;
    if (!mine)
        return 0;
    while (*mine && strcmp(mine, paths) == 0) {
        mine = next_of(mine);
        paths = next_of(paths);
    }
    return !*mine && !*paths;
}

int mull__watch_moved(mull__watch *watch)
{
    uint64_t before = watch->look;
    watch->look = look_at(watch->paths);
    return watch->look != before;
}

void mull__watch_end(mull__watch *watch)
{
    close_folders(&watch->folders);
    mull__free(&watch->engine->allocator, watch->paths);
    mull__free(&watch->engine->allocator, watch->names);
    mull__watch_init(watch, watch->engine, watch->changed);
}
