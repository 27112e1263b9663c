/* mulligan/module.h: what makes a module of a transport: a shared object that mulligan loads when a
 * URL of its scheme is first used, from the folder `mulligan/modules` beside libmulligan.
 *
 *   #include <mulligan/module.h>
 *
 *   MULL_MODULE(board, &board_transport);
 *
 * stands in one file of the module, and the name is the scheme. It is built, as board.so, by
 *
 *   cc -shared -fPIC -fvisibility=hidden -DMULL_STATIC module.c board.c -o board.so
 *
 * A module links nothing of mulligan, since it may be loaded by the program, the Lua module and
 * libmulligan alike, and by several of them in one process. Its calls of mull_port_... go to the
 * engine that each port belongs to. It may call nothing else of the library, but has
 * what mulligan/transport.h defines itself, as mull_settled_headers and mull_message_copy.
 *
 * docs/embedding.md says where it is put; examples/board/module.c is one.
 */
#ifndef MULLIGAN_MODULE_H
#define MULLIGAN_MODULE_H

#include "transport.h"

#ifdef __cplusplus
extern "C" {
#endif

/* MULL__PORT_CALLS lists what mulligan/transport.h has for a transport to call: DOES(name,
 * (parameters), (arguments)), or GIVES with the type of the answer before these. Within a version
 * of transports it only grows, at its end. */
#define MULL__PORT_CALLS(DOES, GIVES)                                                              \
    DOES(state, (mull_port * port, mull_health health, const char *why), (port, health, why))      \
    DOES(source,                                                                                   \
         (mull_port * port, mull_ticket consumer, mull_source_state state,                         \
          const mull_abilities *found, const char *why),                                           \
         (port, consumer, state, found, why))                                                      \
    DOES(delivered, (mull_port * port, mull_ticket consumer, mull_delivery * delivery),            \
         (port, consumer, delivery))                                                               \
    DOES(lost, (mull_port * port, mull_ticket delivery, const char *why), (port, delivery, why))   \
    DOES(answer, (mull_port * port, mull_ticket ticket, int status, const char *why),              \
         (port, ticket, status, why))                                                              \
    DOES(depth,                                                                                    \
         (mull_port * port, mull_ticket ticket, int status, const mull_depth *depth,               \
          const char *why),                                                                        \
         (port, ticket, status, depth, why))                                                       \
    DOES(closed, (mull_port * port), (port))                                                       \
    GIVES(mull_timer *, timer_new, (mull_port * port, void (*fire)(void *data), void *data),       \
          (port, fire, data))                                                                      \
    DOES(timer_set, (mull_port * port, mull_timer * timer, int64_t delay_ms),                      \
         (port, timer, delay_ms))                                                                  \
    DOES(timer_free, (mull_port * port, mull_timer * timer), (port, timer))                        \
    DOES(working, (mull_port * port, int change), (port, change))                                  \
    GIVES(int64_t, now, (const mull_port *port), (port))                                           \
    GIVES(int64_t, wall, (const mull_port *port), (port))                                          \
    GIVES(void *, data, (const mull_port *port), (port))                                           \
    GIVES(struct uv_loop_s *, loop, (mull_port * port), (port))                                    \
    GIVES(const mull_allocator *, allocator, (const mull_port *port), (port))                      \
    DOES(log, (mull_port * port, mull_level level, const char *text), (port, level, text))

#define MULL__CALL(name, parameters, arguments)             void(*name) parameters;
#define MULL__CALL_GIVES(type, name, parameters, arguments) type(*name) parameters;

/* mull_port_calls are the functions of one engine's library. A port begins with a pointer to them.
 */
typedef struct mull_port_calls {
    MULL__PORT_CALLS(MULL__CALL, MULL__CALL_GIVES)
} mull_port_calls;

#undef MULL__CALL
#undef MULL__CALL_GIVES

/* mull_module is what a module exports, under the name of this struct; MULL_MODULE fills it in. */
struct mull_module {
    size_t size;                         /* of this struct */
    int version;                         /* MULL_TRANSPORT_VERSION */
    size_t port_size;                    /* of the mull_port_calls that it knows */
    const char *name;                    /* as its file's, without ".so" */
    const mull_transport_ops *transport; /* whose scheme is the module's name */
};

#define MULL__MODULE(name, transport)                                                              \
    {                                                                                              \
        sizeof(struct mull_module), MULL_TRANSPORT_VERSION, sizeof(mull_port_calls), #name,        \
            transport                                                                              \
    }

#define MULL__CALLS_OF(port) (*(const mull_port_calls *const *)(const void *)(port))
#define MULL__FORWARD(name, parameters, arguments)                                                 \
    void mull_port_##name parameters                                                               \
    {                                                                                              \
        MULL__CALLS_OF(port)->name arguments;                                                      \
    }
#define MULL__FORWARD_GIVES(type, name, parameters, arguments)                                     \
    type mull_port_##name parameters                                                               \
    {                                                                                              \
        return MULL__CALLS_OF(port)->name arguments;                                               \
    }

/* MULL_MODULE makes a module of a transport, `transport` being the address of its ops. Where the
 * build links the module into the library (MULL_STATIC_MODULES), it makes a row for its list. */
#ifdef MULL__LINKED
#define MULL_MODULE(name, transport)                                                               \
    extern const struct mull_module mull__module_##name;                                           \
    const struct mull_module mull__module_##name = MULL__MODULE(name, transport)
#else
extern __attribute__((visibility("default"))) const struct mull_module mull_module;
#define MULL_MODULE(name, transport)                                                               \
    MULL__PORT_CALLS(MULL__FORWARD, MULL__FORWARD_GIVES)                                           \
    const struct mull_module mull_module = MULL__MODULE(name, transport)
#endif

#ifdef __cplusplus
}
#endif

#endif
