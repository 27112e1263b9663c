/* modules.c: transports that are modules; base/module_file.h loads them. */
#include "modules.h"

#include "base/module_file.h"
#include "mulligan/module.h"
#include "transports.h"

#include <stdio.h>
#include <string.h>

/* fits: of a module of another version no more is read than its size and version. */
static int fits(const mull__module_search *s, const struct mull_module *module)
{
    if (module->version != MULL_TRANSPORT_VERSION)
        return mull__module_refuse(s,
                                   "%s is for transports of version %d, this mulligan for %d; "
                                   "install both of one release",
                                   s->file, module->version, MULL_TRANSPORT_VERSION);
    if (module->size < sizeof *module || module->port_size > sizeof(mull_port_calls))
        return mull__module_refuse(s, "%s doesn't fit this mulligan; install both of one release",
                                   s->file);
    const mull_transport_ops *ops = module->transport;
    if (!module->name || strcmp(module->name, s->name) != 0 || !ops ||
        ops->version != module->version || strcmp(ops->scheme, s->name) != 0)
        return mull__module_refuse(s,
                                   "%s is the module '%s', with a transport for '%s:'; "
                                   "both must be called as its file is",
                                   s->file, module->name ? module->name : "",
                                   ops ? ops->scheme : "");
    const char *slot = mull__missing_slot(ops);
    return slot ? mull__module_refuse(
                      s, "%s has no `%s`; only `depth`, `hold` and `flush` may be missing", s->file,
                      slot)
                : 1;
}

const mull_transport_ops *mull__module_load(const char *scheme, char *why, size_t why_size)
{
    char title[MULL__SCHEME_MAX + sizeof "'':"];
    mull__module_search search = {.name = scheme, .title = title, .why = why, .size = why_size};
    why[0] = '\0';
    if (!mull__is_scheme(scheme)) /* no other text becomes part of a path */
        return NULL;
    snprintf(title, sizeof title, "'%s:'", scheme);
    const struct mull_module *module = mull__module_symbol(&search, "mull_module");
    return module && fits(&search, module) ? module->transport : NULL;
}
