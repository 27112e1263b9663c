/* transports.c: the one file that names every transport. A new one is a row here, or a module. */
#include "transports.h"

#include "modules.h"
#include "mulligan/module.h"

#include <stdio.h>
#include <string.h>

#define TRANSPORTS(X)                                                                              \
    X(mull__memory)                                                                                \
    X(mull__sqlite)

#define DECLARE(symbol) extern const mull_transport_ops symbol;
TRANSPORTS(DECLARE)

#define ROW(symbol) &symbol,
static const mull_transport_ops *const transports[] = {TRANSPORTS(ROW)};

enum { COUNT = sizeof transports / sizeof transports[0] };

/* Modules that the build was told to link in: MULL__STATIC_MODULES is ROW(NAME) for each. */
#ifdef MULL__STATIC_MODULES
#undef ROW
#define ROW(name) extern const struct mull_module mull__module_##name;
MULL__STATIC_MODULES
#undef ROW
#define ROW(name) &mull__module_##name,
static const struct mull_module *const linked[] = {MULL__STATIC_MODULES NULL};
#else
static const struct mull_module *const linked[] = {NULL};
#endif

/* Those of ours that are modules, each in the package mulligan-NAME; and those still to come. */
static const char *const packaged[] = {"amqp", NULL};

/* Schemes of a module that isn't called as they are. */
static const struct {
    const char *scheme, *module;
} seconds[] = {{"amqps", "amqp"}};
static const char *const later[] = {"redis", "nats", NULL};

int mull__is_scheme(const char *text)
{
    size_t length = text ? strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789+-.") : 0;
    return length > 0 && length <= MULL__SCHEME_MAX && !text[length] && text[0] >= 'a' &&
           text[0] <= 'z';
}

const char *mull__missing_slot(const mull_transport_ops *ops)
{
    return !ops->look          ? "look"
           : !ops->open        ? "open"
           : !ops->subscribe   ? "subscribe"
           : !ops->credit      ? "credit"
           : !ops->unsubscribe ? "unsubscribe"
           : !ops->publish     ? "publish"
           : !ops->settle      ? "settle"
           : !ops->release     ? "release"
           : !ops->close       ? "close"
                               : NULL;
}

int mull__has_scheme(const char *url, const char *scheme)
{
    size_t length = strlen(scheme);
    return strncmp(url, scheme, length) == 0 && url[length] == ':';
}

/* module_of writes the name of the module that a URL's scheme would be in: as a rule, its own.
 * Empty: the URL has no scheme, or one that is too long. */
static const char *module_of(const char *url, char name[64])
{
    size_t length = strcspn(url, ":");
    int whole = url[length] && length < 64;
    for (size_t i = 0; i < sizeof seconds / sizeof *seconds; i++)
        if (mull__has_scheme(url, seconds[i].scheme))
            return seconds[i].module;
    snprintf(name, 64, "%.*s", whole ? (int)length : 0, url);
    return name;
}

static int is_in(const char *const *modules, const char *module)
{
    while (*modules && strcmp(module, *modules) != 0)
        modules++;
    return *modules != NULL;
}

/* is_one_of says whether a URL's module is in a list. */
static int is_one_of(const char *const *modules, const char *url)
{
    char name[64];
    return is_in(modules, module_of(url, name));
}

static const mull_transport_ops *built_in(const char *url)
{
    for (size_t i = 0; i < COUNT; i++)
        if (mull__has_scheme(url, transports[i]->scheme))
            return transports[i];
    char name[64];
    const char *module = module_of(url, name);
    for (size_t i = 0; linked[i]; i++)
        if (strcmp(module, linked[i]->name) == 0)
            return linked[i]->transport;
    return NULL;
}

/* load asks the module of a URL. NULL: as mull__module_load. */
static const mull_transport_ops *load(const char *url, char *why, size_t size)
{
    char name[64];
    return mull__module_load(module_of(url, name), why, size);
}

const mull_transport_ops *mull__transport_for(const char *url)
{
    char why[256];
    const mull_transport_ops *ops = built_in(url);
    return ops ? ops : load(url, why, sizeof why);
}

const mull_transport_ops *mull_transport_ops_of(const char *url)
{
    return url ? mull__transport_for(url) : NULL;
}

int mull__transport_is_ours(const char *url)
{
    return built_in(url) || is_one_of(packaged, url) || is_one_of(later, url);
}

void mull__transport_schemes(char *text, size_t size)
{
    size_t length = 0;
    for (size_t i = 0; i < COUNT && length < size; i++)
        length += (size_t)snprintf(text + length, size - length, "%s%s:", i ? ", " : "",
                                   transports[i]->scheme);
    for (size_t i = 0; packaged[i] && length < size; i++)
        length += (size_t)snprintf(text + length, size - length, ", %s:", packaged[i]);
    for (size_t i = 0; i < sizeof seconds / sizeof *seconds && length < size; i++)
        length += (size_t)snprintf(text + length, size - length, ", %s:", seconds[i].scheme);
    for (size_t i = 0; linked[i] && length < size; i++)
        if (!is_in(packaged, linked[i]->name))
            length += (size_t)snprintf(text + length, size - length, ", %s:", linked[i]->name);
}

void mull__transport_unknown(const char *url, const char *more, char *why, size_t size)
{
    char known[128], name[64];
    size_t length = strcspn(url, ":");
    int scheme = length < 32 ? (int)length : 32;
    if (load(url, why, size) || why[0])
        return;
    mull__transport_schemes(known, sizeof known);
    const char *module = module_of(url, name);
    if (is_one_of(packaged, url) && mull__modules_folders)
        snprintf(why, size, "'%.*s:' needs the package mulligan-%s", scheme, url, module);
    else if (is_one_of(packaged, url))
        snprintf(why, size, "'%.*s:' isn't linked in here; the build needs MULL_STATIC_MODULES=%s",
                 scheme, url, module);
    else if (is_one_of(later, url))
        snprintf(why, size, "'%.*s:' is not in this version yet", scheme, url);
    else if (!url[length])
        snprintf(why, size, "'%.*s' begins with no scheme; known are %s%s", scheme, url, known,
                 more);
    else
        snprintf(why, size, "there is no '%.*s:'; known are %s%s", scheme, url, known, more);
}
