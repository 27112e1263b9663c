/* mulligan.h: what an embedder needs. Read from top to bottom, it is the manual.
 *
 * When the handling of a message fails, a policy decides: try again now, later, put the message
 * aside for a person, or drop it. There are two ways in:
 *
 *   decide   mull_policy_load -> mull_decider_new -> mull_decide            no loop, no I/O
 *   run      mull_engine_new, _transport, mull_consumer_add, mull_engine_run     the whole of it
 *
 * Ten calls to know: mull_policy_load, _free; mull_decider_new, mull_decide; mull_engine_new,
 * _transport, _run, _close; mull_consumer_add; and mull_done, by which a handler ends a call.
 * docs/api.md lists the others by what they are for, docs/embedding.md leads through examples.
 *
 * Conventions, which hold for every function here:
 *
 * - What `mull_..._load/new` gives, `mull_..._free/close` takes back. Out parameters come first and
 *   are yours; what is returned or passed to a callback is borrowed, until the callback returns or
 *   as its comment says. A pointer you pass is borrowed for the call.
 * - A policy is for any thread, a decider for one at a time, an engine for the thread of its loop.
 *   Calls of an engine's that may come from any thread say so.
 * - Functions that can fail return 0 or a negative MULL_E... code; on failure nothing was done and
 *   the out parameter is set to NULL, an id to 0.
 * - Structs that you fill in begin with `size`, which is their sizeof; zero everywhere else is
 *   valid and means the default named at the end of each comment. MULL_INIT(type) gives that. Those
 *   of another release have another size, and are taken as well: what they lack has its default,
 *   what they have besides is neither looked at nor touched. One whose size was never set, and so
 *   is 0, is MULL_EINVAL.
 * - Wrong use is answered where that is cheap: with MULL_EINVAL for a NULL, a number or a text that
 *   can't be, with MULL_ESTATE for a call that has no place where it is made; a function without a
 *   result does nothing then. A number, a pointer or a list that is not what it says is yours.
 * - Strings are valid UTF-8 and end in a NUL; bodies are bytes with a size. Times are milliseconds.
 * - Nothing here keeps global state, prints, aborts or exits.
 */
#ifndef MULLIGAN_H
#define MULLIGAN_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* MULL_API is before each function of the library; with MULL_STATIC, of the static one. */
#if defined(MULL_STATIC)
#define MULL_API
#elif defined(__GNUC__)
#define MULL_API __attribute__((visibility("default")))
#else
#define MULL_API
#endif

/* MULL_VERSION is the version of this header. */
#define MULL_VERSION "0.1.0"

/* mull_version is the version of the library that runs, MULL_VERSION that of this header. */
MULL_API const char *mull_version(void);

/* MULL_INIT is a struct of the type with its size set and all else zero, in C and in C++:
 *
 *   mull_error error = MULL_INIT(mull_error); */
#ifdef __cplusplus
#define MULL_INIT(type) (::mull_init<type>())
extern "C++" {
/* mull_init is what MULL_INIT is in C++. */
template <typename T> inline T mull_init()
{
    T made = T();
    made.size = sizeof(T);
    return made;
}
}
#else
#define MULL_INIT(type) ((type){.size = sizeof(type)})
#endif

/* ---- Errors ---------------------------------------------------------------------------------- */

/* MULL_ERRORS lists every code: its name, its value, its name in Lua, and what it says. */
#define MULL_ERRORS(X)                                                                             \
    X(MULL_EINVAL, -1, "invalid", "an argument is missing or out of range")                        \
    X(MULL_ENOMEM, -2, "memory", "out of memory")                                                  \
    X(MULL_EPOLICY, -3, "policy", "the policy cannot be loaded")                                   \
    X(MULL_EDONE, -4, "done", "the call has ended already")                                        \
    X(MULL_ELOST, -5, "lost", "the claim on the message is gone")                                  \
    X(MULL_EIO, -6, "io", "the transport could not carry it out")                                  \
    X(MULL_ESTATE, -7, "state", "not possible in the state that the engine is in")                 \
    X(MULL_ETOOBIG, -8, "too_big", "larger, or more, than allowed")                                \
    X(MULL_EREFUSED, -9, "refused", "the engine would not work like this")                         \
    X(MULL_EDOWN, -10, "down", "the transport is down")

/* What functions return; 0 is success. */
#define MULL__ERROR_ENUM(name, value, lua, text) name = value,
enum { MULL_OK = 0, MULL_ERRORS(MULL__ERROR_ENUM) MULL_E_LAST = -11 };
#undef MULL__ERROR_ENUM

/* mull_strerror says in a few words what a code means; static, never NULL. */
MULL_API const char *mull_strerror(int code);

/* mull_problem_fn is told of each mistake found, in order: in `file`, as mull_rule has it (or
 * NULL), at `line` (or 0), and what would be right. It may not call the library back. */
typedef void (*mull_problem_fn)(const char *file, int line, const char *text, void *data);

/* mull_level is how much a line of log matters; those of MULL_DEBUG are for us. */
typedef enum mull_level { MULL_DEBUG, MULL_INFO, MULL_WARNING, MULL_ERROR_LEVEL } mull_level;

/* mull_log_fn takes one line of log, without a newline. It may be called on any of the library's
 * threads, one call at a time for one engine or policy, and may not call the library back. */
typedef void (*mull_log_fn)(mull_level level, const char *text, void *data);

/* mull_allocator: `resize` is realloc with `data` besides: a NULL pointer asks for new memory, a
 * size of 0 frees; NULL says that there is none. It is called on any thread that calls the library
 * and on those that transports have, several at once, and may not call the library back. Zero:
 * malloc and free.
 *
 * A policy's gives all that the policy and its deciders take, their states of Lua included; an
 * engine's all that the engine and its transports take. The Lua module's are malloc and free. What
 * libuv, SQLite, jansson and the C library take for themselves is theirs to find: from malloc, or
 * from what the embedder told them (uv_replace_allocator, sqlite3_config, json_set_alloc_funcs).
 *
 * Where there is no memory, a call says MULL_ENOMEM and nothing was done; a function of the policy
 * counts as one that raised; and what an engine couldn't do, it does once there is some. Only libuv
 * aborts, where it has none for its table of what it waits for. */
typedef struct mull_allocator {
    void *(*resize)(void *pointer, size_t bytes, void *data);
    void *data;
} mull_allocator;

/* ---- Messages, errors, failures -------------------------------------------------------------- */

/* mull_header is a header of a message. */
typedef struct mull_header {
    const char *name;  /* exact, case matters */
    const char *value; /* any UTF-8 */
} mull_header;

/* mull_message is a message: what you publish, and what a handler gets. */
typedef struct mull_message {
    size_t size;
    const char *id;    /* drop duplicates by it; NULL: a random one, given by publish or send */
    const char *type;  /* NULL: none */
    const char *key;   /* NULL: none */
    const char *queue; /* where it goes, or came from */
    const void *body;  /* any bytes, `body_size` of them; NULL: none */
    size_t body_size;
    const mull_header *headers; /* `header_count` of them, each name once */
    size_t header_count;
    /* Read by handlers, not by publish: */
    int64_t attempt;      /* 1 in the first call of a hand-out */
    int64_t redeliveries; /* done so far */
    int64_t calls;        /* handler calls that failed before this one, over every delivery */
    int64_t deliveries;   /* how often the broker handed this copy out */
} mull_message;

/* mull_kind is what a value is. One of a kind that isn't here is as if it were MULL_NIL. */
typedef enum mull_kind {
    MULL_NIL,
    MULL_BOOLEAN,
    MULL_INTEGER,
    MULL_NUMBER,
    MULL_STRING,
    MULL_LIST,
    MULL_MAP
} mull_kind;

struct mull_field;

/* mull_value is the value of an error's field, by its `kind` one of the union. Numbers compare by
 * value: 503 equals 503.0. Lists and maps are seen by function matchers only; at most 16 levels,
 * 10,000 values and 1 MiB of text of them, what goes beyond is MULL_NIL. So is what is NULL. */
typedef struct mull_value {
    mull_kind kind;
    union {
        int boolean;                     /* of a MULL_BOOLEAN; 0 is false */
        int64_t integer;                 /* of a MULL_INTEGER */
        double number;                   /* of a MULL_NUMBER */
        const char *string;              /* of a MULL_STRING */
        const struct mull_value *items;  /* of a MULL_LIST, `count` of them */
        const struct mull_field *fields; /* of a MULL_MAP, `count` of them */
    } as;
    size_t count;
} mull_value;

/* mull_field is something that an error carries, or an entry of a map: a name and its value. One
 * whose name is NULL is none. */
typedef struct mull_field {
    const char *name;
    mull_value value;
} mull_field;

/* mull_error is why a handler failed. Of its causes sixteen count; where they go round in a circle,
 * each counts once. */
typedef struct mull_error {
    size_t size;
    const char *type;           /* required, not empty */
    const char *message;        /* NULL: "" */
    const char *stack;          /* NULL: "" */
    const char *const *lineage; /* its ancestors, nearest first, as a class knows them; 256 count */
    size_t lineage_count;       /* of these; 0 */
    const mull_field *fields;   /* whatever else it carries; the first of a name counts */
    size_t field_count;         /* of these; 0 */
    const struct mull_error *cause; /* NULL: none; as one whose size is too small */
} mull_error;

/* Flags of a failure. Others are MULL_EINVAL. */
enum {
    MULL_HAS_CHANCE = 1,   /* `chance` is set; without it, it is the hash of the message's id */
    MULL_CANNOT_RETRY = 2, /* the transport can't hold a message while its handler runs again */
    MULL_CANNOT_DELAY = 4, /* the transport has no delayed delivery */
    MULL_NO_JITTER = 8     /* as if every jitter were 0 */
};

/* mull_type is the name of an error's type, mull_site a consumer and a transport, each of which
 * there may be none of: interned in a policy, by mull_type_intern and mull_site_intern. 0: none. */
typedef uint32_t mull_type;
typedef uint32_t mull_site;

/* mull_failure is all that a decision looks at. The same failure always gets the same verdict. */
typedef struct mull_failure {
    size_t size;
    const mull_error *error;     /* required */
    const mull_message *message; /* NULL: none; the counters in it are not looked at */
    const char *consumer;        /* NULL: none */
    const char *transport;       /* the name that it was set up with; NULL: none */
    int64_t attempt;             /* failed calls in this hand-out, this one included; 0: 1 */
    int64_t redeliveries;        /* done so far */
    int64_t calls;               /* failed calls in all, this one too; 0: attempt + redeliveries */
    int64_t deliveries;          /* hand-outs of this copy; 0: 1 */
    int64_t age_ms;              /* since the first failure */
    uint64_t chance;             /* what jitter is drawn from; see MULL_HAS_CHANCE */
    uint64_t seed;               /* changes every jitter; 0 */
    uint32_t flags;              /* of the above; 0 */
    mull_type type;  /* in place of the name in `error`, which may then be NULL: an error that has
                        nothing but its type; 0: by name */
    mull_site site;  /* in place of `consumer` and `transport`; 0: by their names */
    int64_t held_ms; /* its age stood still for so long: a deadline counts both; below 0: 0 */
} mull_failure;

/* ---- Verdicts -------------------------------------------------------------------------------- */

/* mull_action is what is to be done: the handler runs again here; the message goes back to its
 * transport, due later; a copy goes to a queue of dead letters; it is dropped. */
typedef enum mull_action { MULL_RETRY, MULL_REDELIVER, MULL_DEAD_LETTER, MULL_DISCARD } mull_action;

/* MULL_REASONS lists why a message ends; the first that holds is given. */
#define MULL_REASONS(X)                                                                            \
    X(MULL_REASON_NONE, NULL)                                                                      \
    X(MULL_REASON_FALLBACK, "fallback")                                                            \
    X(MULL_REASON_OVERRIDE, "override")                                                            \
    X(MULL_REASON_MAX_DELIVERIES, "max_deliveries")                                                \
    X(MULL_REASON_UNRECOVERABLE, "unrecoverable")                                                  \
    X(MULL_REASON_NO_RULE, "no_rule")                                                              \
    X(MULL_REASON_RULE, "rule")                                                                    \
    X(MULL_REASON_EXHAUSTED, "exhausted")                                                          \
    X(MULL_REASON_MAX_ATTEMPTS, "max_attempts")                                                    \
    X(MULL_REASON_MAX_AGE, "max_age")                                                              \
    X(MULL_REASON_DEADLINE, "deadline")

/* mull_reason is one of MULL_REASONS. */
#define MULL__REASON_ENUM(name, text) name,
typedef enum mull_reason { MULL_REASONS(MULL__REASON_ENUM) MULL_REASON_LAST } mull_reason;
#undef MULL__REASON_ENUM

/* mull_tier is the part of a rule's chain that a verdict is a step of; mull_fallback what the
 * transport can't do, so that the message is a dead letter instead. */
typedef enum mull_tier { MULL_TIER_NONE, MULL_TIER_RETRY, MULL_TIER_REDELIVER } mull_tier;
typedef enum mull_fallback { MULL_FALLBACK_NONE, MULL_NO_RETRY, MULL_NO_DELAY } mull_fallback;

/* mull_action_name and its like give the words that logs and the Lua module use; static; NULL for
 * none. */
MULL_API const char *mull_action_name(mull_action action);
MULL_API const char *mull_reason_name(mull_reason reason);
MULL_API const char *mull_tier_name(mull_tier tier);
MULL_API const char *mull_fallback_name(mull_fallback fallback);

/* mull_rule says which rule decided, or, where the reason is `unrecoverable`, which declaration. */
typedef struct mull_rule {
    const char *file;  /* relative to the policy's folder; the host policy's name; NULL: no rule
                          decided, or the built-in declaration */
    int line;          /* of its `on`, `default` or `unrecoverable` */
    const char *scope; /* "host", "bus", "transport:NAME" or "consumer:NAME" */
    const char *type;  /* the type that it is written for */
} mull_rule;

/* In a verdict's `of`: redelivered until a limit on age or attempts ends it. */
enum { MULL_UNLIMITED = -1 };

/* mull_verdict is the answer: what to do (`action`), why where that is an end (`reason`), of which
 * `tier` it is a step, a `fallback` where the transport can't do what was meant, and the `rule`
 * that decided. Its strings live until the decider's next call. */
typedef struct mull_verdict {
    size_t size; /* set before the call */
    mull_action action;
    mull_reason reason;
    mull_tier tier;
    mull_fallback fallback;
    int64_t delay_ms;  /* before it; 0 for a dead letter and a discard */
    int64_t step;      /* the how-manyth of the tier; 0 where there is none */
    int64_t of;        /* of how many; MULL_UNLIMITED; 0 where there is none: in what an override
                          answered, too */
    const char *queue; /* of a dead letter; NULL */
    const char *note;  /* of a discard; NULL */
    mull_rule rule;
    const char *generation; /* the content hash of the policy's files, 32 hex digits */
} mull_verdict;

/* ---- Events ---------------------------------------------------------------------------------- */

/* mull_limit_status is a rate_limit in force, of a consumer or one value. Moments: wall clock. */
typedef struct mull_limit_status {
    size_t size;
    const char *per;        /* what it counts apart: "key", "type", "header NAME"; NULL: nothing */
    const char *value;      /* of its `per`; NULL: it is for the whole consumer */
    const char *file;       /* where its statement is, as mull_rule has it, */
    int line;               /* and at which line */
    int64_t since_ms;       /* it is in force */
    int64_t next_ms;        /* the next call begins no earlier */
    int waits_for_handlers; /* that are at work: until they end, none begins */
    uint64_t probes;        /* calls that it has let through */
    const char *error_type; /* of the last failure that counted; NULL: unknown */
} mull_limit_status;

/* MULL_EVENTS lists what a policy or an engine tells of itself. */
#define MULL_EVENTS(X)                                                                             \
    X(MULL_EVENT_DECIDED, "decided")                                                               \
    X(MULL_EVENT_MATCHER_FAILED, "matcher_failed")                                                 \
    X(MULL_EVENT_OVERRIDE_FAILED, "override_failed")                                               \
    X(MULL_EVENT_NOTIFY_FAILED, "notify_failed")                                                   \
    X(MULL_EVENT_HEADER_IGNORED, "header_ignored")                                                 \
    X(MULL_EVENT_POLICY_LOADED, "policy_loaded")                                                   \
    X(MULL_EVENT_POLICY_REFUSED, "policy_refused")                                                 \
    X(MULL_EVENT_TRANSPORT_UP, "transport_up")                                                     \
    X(MULL_EVENT_RATE_LIMIT_STARTED, "rate_limit_started")                                         \
    X(MULL_EVENT_RATE_LIMIT_ENDED, "rate_limit_ended")                                             \
    X(MULL_EVENT_RATE_LIMIT_FORGOT, "rate_limit_forgot")                                           \
    X(MULL_EVENT_PAUSED, "paused")                                                                 \
    X(MULL_EVENT_RESUMED, "resumed")                                                               \
    X(MULL_EVENT_CONCURRENCY_CHANGED, "concurrency_changed")

/* mull_event_kind is one of MULL_EVENTS. */
#define MULL__EVENT_ENUM(name, text) name,
typedef enum mull_event_kind { MULL_EVENTS(MULL__EVENT_ENUM) MULL_EVENT_LAST } mull_event_kind;
#undef MULL__EVENT_ENUM

/* mull_event_name gives the word for it; static; NULL: there is no such kind. */
MULL_API const char *mull_event_name(mull_event_kind kind);

/* mull_event: `failure` and `verdict` are there where it is about a message, else NULL; without an
 * error in header_ignored, with the verdict that stands in override_failed. `rule` is the one whose
 * matcher failed, or the first that was skipped since the decision's budget was spent. `text` says
 * which, why, and how many more. `generation` is in force, also after one was refused. `consumer`
 * is there from rate_limit_started on, `limit` for one that started, ended, or forgot a value. */
typedef struct mull_event {
    mull_event_kind kind; /* what happened */
    const mull_failure *failure;
    const mull_verdict *verdict;
    const mull_rule *rule;
    const char *text;
    const char *generation;
    const char *consumer;
    const mull_limit_status *limit;
} mull_event;

/* mull_event_fn hears of an event; all that it is given is borrowed. It may call the library, but
 * not decide with the decider that tells it. A policy's is called by each thread that decides,
 * several at once. */
typedef void (*mull_event_fn)(const mull_event *event, void *data);

/* ---- Deciding -------------------------------------------------------------------------------- */

/* mull_policy points at the generation in force. Any thread may use it, until it is freed. */
typedef struct mull_policy mull_policy;

/* mull_decider decides, on one thread at a time; one a thread. In a debug build (of the CMake build
 * type Debug, or with -DMULL_CHECKS=ON) a second thread that comes meanwhile gets MULL_ESTATE; in
 * others that is a race, since looking for it would cost what a decision does. */
typedef struct mull_decider mull_decider;

/* mull_policy_options says what to load. Its texts are copied. The host policy is what several
 * policies of a machine share: policy.host(), which is said there alone, and policy.errors. */
typedef struct mull_policy_options {
    size_t size;
    const char *path;        /* the file to load, or */
    const char *text;        /* its text; `path` then only names it; "policy.lua" */
    size_t text_size;        /* 0: strlen(text) */
    mull_problem_fn problem; /* told of each mistake; NULL */
    mull_log_fn log;         /* what the policy prints, at MULL_INFO; NULL */
    mull_event_fn event; /* matcher_failed, override_failed: at once, on the thread that decides;
                            policy_loaded, policy_refused: on the one that reloads; NULL */
    void *data;          /* for the three */
    mull_allocator allocator; /* of the policy and its deciders */
    const char *host_path;    /* the file of the host policy (NULL: there is none), or */
    const char *host_text;    /* its text; `host_path` then only names it; "host.lua" */
    size_t host_text_size;    /* 0: strlen(host_text) */
} mull_policy_options;

/* mull_policy_load compiles a policy to a table. Each mistake is told to `problem`, in the order of
 * lines. MULL_EPOLICY: there are mistakes, or its files change while they are read, again and
 * again; MULL_ENOMEM; MULL_EINVAL: neither path nor text. */
MULL_API int mull_policy_load(mull_policy **out, const mull_policy_options *options);

/* mull_policy_reload builds a whole new generation from the same options, with `text` for another
 * text (NULL: read the files again), and publishes it, or changes nothing. 0: published; 1: the
 * same bytes, nothing to do. One reload at a time, from any thread; deciders go on meanwhile. No
 * lock is held when `event` is told, so that what threads that reload at once tell may come in
 * another order: mull_policy_generation says what is in force. MULL_EREFUSED: an engine that runs
 * with this policy couldn't work with the new one, or the files have no rule left where those in
 * force have some; `problem` is told why, as of mistakes. MULL_ESTATE: called out of `problem` or
 * `log` of a load of the same policy. */
MULL_API int mull_policy_reload(mull_policy *policy, const char *text, size_t text_size);

/* mull_policy_generation writes the name of what is in force: 32 hex digits; of no policy "". */
MULL_API void mull_policy_generation(mull_policy *policy, char name[33]);

/* mull_policy_rules is how many rules the generation in force has, over all scopes. Any thread. */
MULL_API size_t mull_policy_rules(mull_policy *policy);

/* mull_policy_free ends your use of a policy, on any thread. Deciders and engines that are left go
 * on by it, and its functions for events, problems and logs may be called, until the last of them
 * is gone; its memory goes then. NULL is fine. */
MULL_API void mull_policy_free(mull_policy *policy);

/* mull_decider_new makes a decider. MULL_ENOMEM; MULL_EPOLICY if the policy's functions can't be
 * built again (they were before, so this means that they don't always give the same); MULL_ESTATE
 * out of the policy's own `problem` or `log`. */
MULL_API int mull_decider_new(mull_decider **out, mull_policy *policy);

/* mull_decider_free frees a decider, on any thread; not out of an event of its own. The strings of
 * its last verdict are gone. NULL is fine. */
MULL_API void mull_decider_free(mull_decider *decider);

/* mull_type_intern gives the id of an error type's name, mull_site_intern that of a consumer on a
 * transport; each of the two may be NULL. The same name has the same id, which is valid with this
 * policy as long as it lives, through every reload, whether a rule names it or not. A decision by
 * ids hashes no name, and is otherwise the same; functions and events see the names. Any thread may
 * call, while others decide and reload; strings are copied, and kept. MULL_EINVAL: no name, or an
 * empty one; MULL_ETOOBIG: longer than 64 KiB, or more than 65,535 types or sites; MULL_ENOMEM. */
MULL_API int mull_type_intern(mull_type *out, mull_policy *policy, const char *name);
MULL_API int mull_site_intern(mull_site *out, mull_policy *policy, const char *consumer,
                              const char *transport);

/* mull_decide gives the verdict on a failure. It allocates nothing and takes no lock where no
 * function of the policy runs. MULL_EINVAL: no error or type, a size that isn't set, a counter
 * below 0, a flag that isn't known, or an id that this policy never gave; MULL_ESTATE: out of an
 * event of the same decider's. The verdict is as it was then. */
MULL_API int mull_decide(mull_decider *decider, const mull_failure *failure, mull_verdict *verdict);

/* ---- Running --------------------------------------------------------------------------------- */

/* mull_engine takes messages from transports, hands them to handlers, and carries out what the
 * policy says of those that fail. It belongs to the thread of its loop; only mull_done, mull_send
 * and mull_stop may be called from others. */
typedef struct mull_engine mull_engine;

/* mull_call numbers one call of a handler; never used again, so a late one does no harm. */
typedef uint64_t mull_call;

/* mull_clock lets a test own the time: `monotonic_ms` and `wall_ms`, which counts since 1970 in
 * UTC, are given `data`, and called on any of the engine's threads. Both are required. */
typedef struct mull_clock {
    int64_t (*monotonic_ms)(void *data);
    int64_t (*wall_ms)(void *data);
    void *data;
} mull_clock;

struct uv_loop_s;

/* A timeout that never comes. */
enum { MULL_NEVER = -1 };

/* mull_engine_options says what an engine works by, and whom it tells of what. */
typedef struct mull_engine_options {
    size_t size;
    mull_policy *policy;     /* required; see mull_policy_free */
    struct uv_loop_s *loop;  /* yours, which it keeps running until it is closed; NULL: its own,
                                which mull_engine_run runs */
    int64_t grace_ms;        /* how long mull_stop lets handlers work on; 0: 10 s */
    int stop_on_signals;     /* SIGTERM and SIGINT do what mull_stop does; 0 */
    int reload_on_sighup;    /* SIGHUP reloads the policy from its files; 0 */
    int reload_on_change;    /* so does a change of one of them; 0. See below */
    mull_log_fn log;         /* what goes on, for people; verdicts come by `event` alone; NULL */
    mull_event_fn event;     /* of all but the policy's own; `decided` once it is carried out;
                                notify_failed is logged where this is NULL; on its thread; NULL */
    mull_problem_fn problem; /* why a call that sets the engine up was refused, or it stops by
                                itself; NULL */
    void (*stopped)(void *data); /* it has stopped; the engine may be closed in it; NULL */
    void *data;                  /* for the four */
    const mull_clock *clock;     /* a test's clock, with mull_engine_turn; NULL: the real ones */
    uint64_t seed;               /* for ids given to messages without one; 0: from the system */
    mull_allocator allocator;    /* of the engine and its transports */
    int64_t quiet_ms;            /* see mull_stop_when_empty; 0: 10 s */
} mull_engine_options;

/* mull_engine_new makes an engine. MULL_EINVAL: an option is out of range, or reloads are asked for
 * and the policy was given as a text, which `problem` says; MULL_ENOMEM; MULL_EIO: the loop or a
 * signal can't be had, mostly for want of file descriptors; else as mull_decider_new.
 *
 * Reloads go on from start to stop, on the loop's thread. The policy's `event` tells what comes of
 * each: policy_loaded or policy_refused, with the reason; the same bytes lead to neither. Changed
 * are a policy's files when one that the last load read, or looked for, is written, replaced, or
 * reached by other links; changes in a row are one. While the files aren't what runs, the log says
 * so once a minute, and what was refused is tried again. */
MULL_API int mull_engine_new(mull_engine **out, const mull_engine_options *options);

/* mull_engine_transport adds a transport: a name for policies and logs, and a URL such as
 * "sqlite:orders.db" or "memory:". It is opened at once. MULL_EINVAL: the name is taken, or the
 * URL is none that is known; MULL_EIO: it can't be opened. `problem` says why. MULL_ESTATE: the
 * engine is being closed. A transport of your own: mulligan/transport.h. */
MULL_API int mull_engine_transport(mull_engine *engine, const char *name, const char *url);

/* mull_handler works on a message, now or later: yours to read until you end it by mull_done. */
typedef void (*mull_handler)(mull_engine *engine, mull_call call, const mull_message *message,
                             void *data);

/* mull_cancel_fn says that a call's end no longer matters (timed out, lost, shut down). The call
 * keeps its slot and its message until mull_done all the same. */
typedef void (*mull_cancel_fn)(mull_engine *engine, mull_call call, void *data);

/* mull_consumer_options is a consumer: who works on the messages of a queue. */
typedef struct mull_consumer_options {
    size_t size;
    const char *name;         /* required; what policies call it */
    const char *transport;    /* required; a name given to mull_engine_transport */
    const char *queue;        /* required */
    mull_handler handler;     /* required */
    mull_cancel_fn cancel;    /* NULL */
    void *data;               /* for both */
    uint32_t concurrency;     /* never more handlers than this; 0: 1 */
    uint32_t prefetch;        /* claimed but not started; 0: 2 * concurrency */
    int64_t timeout_ms;       /* a call may last; MULL_NEVER: no limit; 0: 30 s */
    size_t max_body;          /* a larger message is dead-lettered on arrival; 0: 16 MiB */
    int paused;               /* it begins as mull_consumer_pause leaves it; 0 */
    int nservicebus;          /* 1: ServiceControl takes in and returns its dead letters; 0 */
    const char *const *types; /* of messages: its own; NULL: all, or what nobody else there names */
    size_t type_count;        /* of these; 0 */
} mull_consumer_options;

/* mull_consumer_add adds a consumer, before the start or later. Strings are copied. MULL_EINVAL: an
 * option is missing, wrong or taken, or its transport can't delay, which `types` need;
 * MULL_EREFUSED: the policy in force can't work with it; `problem` says why. MULL_ESTATE: the
 * engine has stopped. */
MULL_API int mull_consumer_add(mull_engine *engine, const mull_consumer_options *options);

/* mull_consumer_removed_fn: nothing of the consumer is claimed any more, and its name is free (0).
 * MULL_ESTATE: the engine is closed instead. */
typedef void (*mull_consumer_removed_fn)(int status, void *data);

/* mull_consumer_remove lets a consumer's handlers that are at work end, calls none of it any more,
 * and gives back the rest: what waits for a retry with its calls counted. Told on a later turn,
 * when all is settled. MULL_EINVAL: none has this name; MULL_ESTATE: it or the engine is going. */
MULL_API int mull_consumer_remove(mull_engine *engine, const char *name,
                                  mull_consumer_removed_fn removed, void *data);

/* mull_consumer_pause begins no more calls of a consumer, and gives back what waits here: what
 * waits for a retry with its calls counted. Handlers at work end as usual. mull_consumer_resume
 * goes on. Paused already, or not at all: nothing. Errors as of mull_consumer_remove. */
MULL_API int mull_consumer_pause(mull_engine *engine, const char *name);
MULL_API int mull_consumer_resume(mull_engine *engine, const char *name);

/* mull_consumer_concurrency sets how many handlers of a consumer may be at work; where `prefetch`
 * was left to its default, that follows. Handlers beyond it end as usual. More than it ever had
 * takes a new subscription: the messages that wait go back for it, and it is there once the
 * handlers at work have ended. MULL_EINVAL: 0; else as mull_consumer_remove. */
MULL_API int mull_consumer_concurrency(mull_engine *engine, const char *name, uint32_t concurrency);

/* MULL_WHY_NOTS lists why a consumer's handler isn't called just now, the first that holds. */
#define MULL_WHY_NOTS(X)                                                                           \
    X(MULL_WHY_STOPPING, "stopping") /* the engine, or it is being removed */                      \
    X(MULL_WHY_TRANSPORT_DOWN, "transport_down")                                                   \
    X(MULL_WHY_QUEUE_REFUSED, "queue_refused")   /* until a person acts */                         \
    X(MULL_WHY_QUEUE_WAITING, "queue_waiting")   /* its subscription isn't ready */                \
    X(MULL_WHY_SETTLING_FAILS, "settling_fails") /* and is tried again */                          \
    X(MULL_WHY_PAUSED, "paused")                                                                   \
    X(MULL_WHY_NO_WORKER, "no_worker") /* no worker process is there for it */                     \
    X(MULL_WHY_LIMITED, "limited")     /* by rate_limit, until its next probe */                   \
    X(MULL_WHY_RAMP, "ramp") /* as many handlers are at work as may be after a rate_limit */       \
    X(MULL_WHY_RATE, "rate") /* `limit` lets the next call begin later */                          \
    X(MULL_WHY_CANDIDATE_ALONE, "candidate_alone") /* a poison candidate is called, or waits */    \
    X(MULL_WHY_CONCURRENCY, "concurrency")         /* as many handlers are at work as may be */    \
    X(MULL_WHY_NOTHING_THERE, "nothing_there")

/* mull_why_not is one of MULL_WHY_NOTS, or MULL_WHY_CALLED: it is called. */
#define MULL__WHY_ENUM(name, text) name,
typedef enum mull_why_not {
    MULL_WHY_CALLED,
    MULL_WHY_NOTS(MULL__WHY_ENUM) MULL_WHY_LAST
} mull_why_not;
#undef MULL__WHY_ENUM

/* mull_why_not_name gives the word for it; static; NULL: there is no such one, or it is called. */
MULL_API const char *mull_why_not_name(mull_why_not why);

/* mull_consumer_why_not says why a consumer isn't called. Before the start and after the end:
 * MULL_WHY_STOPPING. MULL_EINVAL: there is none of this name; MULL_ESTATE: the engine is closed. */
MULL_API int mull_consumer_why_not(mull_engine *engine, const char *name, mull_why_not *why);

/* mull_engine_start begins to take messages. MULL_EINVAL: it has no transport, which `problem`
 * says; without a consumer it starts, to send, and the log says so. MULL_EREFUSED, with nothing
 * started: the policy in force can't work with these transports and consumers, as `problem` says.
 * MULL_ENOMEM: it may be started again. MULL_ESTATE: it was started before, or stopped. A transport
 * that is down is waited for; a queue that can't be read stops its consumer alone. */
MULL_API int mull_engine_start(mull_engine *engine);

/* mull_engine_run starts, and runs the engine's own loop until it has stopped. MULL_EIO,
 * MULL_EREFUSED: it stopped by itself, see mull_engine_status. MULL_ESTATE on a loop of yours: run
 * that one instead; with a test's clock: see mull_engine_turn; out of a callback of its own; and
 * once it has stopped. */
MULL_API int mull_engine_run(mull_engine *engine);

/* mull_engine_status is 0, or why the engine stops, or stopped, by itself. MULL_EIO: a transport is
 * broken for good, its file deleted, say, or mull_stop_when_empty couldn't find out whether it is;
 * `problem` was told why. The engine stops as mull_stop does; but what a broken transport handed
 * out can't be settled any more, and will be handed out again by whoever opens it once it is
 * mended. MULL_EREFUSED: see mull_stop_when_empty. */
MULL_API int mull_engine_status(const mull_engine *engine);

/* mull_published_fn: the message is safe (0), or why it is not. */
typedef void (*mull_published_fn)(int status, void *data);

/* mull_publish puts a message on a queue of a transport, `delay_ms` from now. `published` is called
 * on a later turn of the loop, if this returns 0. MULL_EINVAL: no such transport, no queue, text
 * that isn't UTF-8, or two headers of one name; MULL_ETOOBIG: the body exceeds 16 MiB, there are
 * more than 1,000 headers, or these and the other texts have more than 1 MiB in all;
 * MULL_EREFUSED: the transport can't delay, or not for so long; MULL_EDOWN: it doesn't work now,
 * which the event transport_up ends; MULL_EIO: it is broken for good; MULL_ESTATE: the engine is
 * being closed. Where it isn't said within a minute whether it is safe, `published` is told
 * MULL_EIO. */
MULL_API int mull_publish(mull_engine *engine, const char *transport, const mull_message *message,
                          int64_t delay_ms, mull_published_fn published, void *data);

/* mull_send holds a message until the call succeeds, and then publishes it to the transport of the
 * call's consumer: with the acknowledgement where the transport can, before it elsewhere. If the
 * call fails, it never leaves. Headers that begin with `mulligan-` are left out: they belong to the
 * message that is handled. Any thread. MULL_EDONE as mull_done; MULL_EREFUSED: the transport can't
 * delay, or not for so long; MULL_ETOOBIG as for mull_publish, or all that the call sends takes
 * more than 64 MiB: what was held before stays so. */
MULL_API int mull_send(mull_engine *engine, mull_call call, const mull_message *message,
                       int64_t delay_ms);

/* mull_done ends a call: well (NULL) or with an error. Any thread. MULL_EDONE: it has ended
 * already, timed out or was lost, and nothing is settled by it; MULL_ENOMEM: not ended, try again;
 * MULL_EINVAL: not ended, the error (copied) has no type, or is no mull_error by its size. */
MULL_API int mull_done(mull_engine *engine, mull_call call, const mull_error *error);

/* mull_stop lets running handlers end within the grace time, takes nothing new, and gives back the
 * rest uncounted. Any thread. One that hasn't started stops as soon as its loop runs. */
MULL_API void mull_stop(mull_engine *engine);

/* mull_stop_when_empty stops the engine once nothing is ready, delayed or claimed, by anyone, in
 * the queues that its consumers read. Where a transport can't count them exactly: once nothing was
 * ready there, in flight here, or put off here and still due, for `quiet_ms`. While a transport
 * that isn't down answers a depth with an error, it is asked again ever more rarely, which the log
 * says once; after a minute of nothing but errors the engine stops, and its status is MULL_EIO.
 * Where all that is left is due in more than 366 days, which no policy can say, is parked, or waits
 * for consumers that are paused, or a queue can't be read, it stops as well: that status is
 * MULL_EREFUSED, and `problem` says what is left. */
MULL_API int mull_stop_when_empty(mull_engine *engine);

/* mull_counts: messages acknowledged (`done`), verdicts carried out (`retried`, `redelivered`,
 * `dead_lettered`, `discarded`), and calls of the policy's notify that failed (`notify_failed`),
 * since the engine was made. */
typedef struct mull_counts {
    size_t size;
    uint64_t done, retried, redelivered, dead_lettered, discarded;
    uint64_t notify_failed;
} mull_counts;

/* mull_engine_counts writes the counts so far, on the loop's thread. */
MULL_API int mull_engine_counts(const mull_engine *engine, mull_counts *counts);

/* MULL_HEALTHS lists how a transport can be. */
#define MULL_HEALTHS(X)                                                                            \
    X(MULL_DOWN, "down")     /* it doesn't work now, and tries again by itself: no connection, a   \
                                login refused, a broker that takes nothing; claims hold */         \
    X(MULL_UP, "up")         /* it works */                                                        \
    X(MULL_BROKEN, "broken") /* nothing will help until a person acts, and to go on would lose     \
                                messages */

/* mull_health is one of MULL_HEALTHS. */
#define MULL__HEALTH_ENUM(name, text) name,
typedef enum mull_health { MULL_HEALTHS(MULL__HEALTH_ENUM) MULL_HEALTH_LAST } mull_health;
#undef MULL__HEALTH_ENUM

/* mull_health_name gives the word for it; static; NULL: there is no such one. */
MULL_API const char *mull_health_name(mull_health health);

/* mull_transport_snapshot is a transport, in a snapshot. */
typedef struct mull_transport_snapshot {
    size_t size;
    const char *name; /* as it was added */
    mull_health health;
    const char *why;    /* why it isn't up, in its own words; NULL: it is, or hasn't said */
    int64_t since_ms;   /* its health is so, wall clock */
    uint64_t claimed;   /* messages that it handed out, and that aren't settled yet */
    uint64_t parked;    /* messages that it never settles, and keeps claimed; see the log */
    uint64_t abandoned; /* messages that can't be settled any more, since it is broken */
} mull_transport_snapshot;

/* Bucket i of a consumer's `times` counts the calls that lasted at most 4^i ms and longer than the
 * bucket before it allows: 1, 4, 16, 64, 256 ms, 1, 4.1, 16.4, 66 s, 4.4, 17.5 min. The last bucket
 * counts all that lasted longer. */
enum { MULL_TIME_BUCKETS = 12 };

/* mull_consumer_snapshot is a consumer, in a snapshot. It counts from its mull_consumer_add on. */
typedef struct mull_consumer_snapshot {
    size_t size;
    const char *name, *transport, *queue; /* as it was added */
    uint32_t concurrency;                 /* as it is now */
    int paused;                           /* by mull_consumer_pause, or from the beginning */
    uint64_t in_flight;                   /* handlers at work, also those that timed out */
    uint64_t waiting;                     /* messages claimed here that wait for a call */
    uint64_t retrying;                    /* messages that wait for a retry */
    uint64_t settling;                    /* messages that the transport is settling */
    uint64_t taken;                       /* messages that it was handed so far */
    mull_why_not why_not;                 /* as of mull_consumer_why_not */
    const char *why_not_text;             /* what the transport says of that; NULL: nothing */
    int64_t why_not_since_ms;             /* it is so, wall clock */
    uint64_t done;                        /* messages acknowledged */
    uint64_t retried, redelivered, dead_lettered, discarded; /* verdicts carried out */
    const uint64_t *reasons; /* [mull_reason]: the dead letters and discards with this reason */
    size_t reason_count;     /* of these; a later library knows more of them */
    const char *error_type;  /* of the last failure, cut at 127 bytes; NULL: there was none */
    const char *error_text;  /* its message, cut at 255 bytes; NULL: there was none */
    int64_t error_ms;        /* when that was, wall clock; 0: there was none */
    uint64_t times[MULL_TIME_BUCKETS];      /* how long calls lasted, from the call to mull_done */
    const mull_limit_status *const *limits; /* `limit_count`: those in force, at most 100 values */
    size_t limit_count;
    uint64_t limited_values; /* by a rate_limit with `per` */
} mull_consumer_snapshot;

/* mull_rule_snapshot is a rule of the policy, in a snapshot: by its file and the line of its `on`
 * or `default`, through every reload. Only rules by which a verdict was carried out are counted,
 * the first 10,000 of them. */
typedef struct mull_rule_snapshot {
    size_t size;
    const char *file; /* as mull_rule has it */
    int line;
    uint64_t retried, redelivered, dead_lettered, discarded; /* verdicts carried out */
} mull_rule_snapshot;

/* mull_snapshot is an engine at one moment. It is one block, which needs neither the engine nor its
 * policy any more. The library makes it and all that it points to: read only what each `size` says
 * is there, if you may run with an earlier library. */
typedef struct mull_snapshot {
    size_t size;
    int64_t time_ms;                                  /* wall clock */
    char generation[33];                              /* of the policy, in force: 32 hex digits */
    const mull_transport_snapshot *const *transports; /* `transport_count`, as they were added */
    size_t transport_count;
    const mull_consumer_snapshot *const *consumers; /* `consumer_count`, as they were added */
    size_t consumer_count;
    const mull_rule_snapshot *const *rules; /* `rule_count`, by file and line */
    size_t rule_count;
} mull_snapshot;

/* mull_engine_snapshot says how an engine is, on the loop's thread, also in a handler. It goes once
 * over the messages that are here, and asks no transport. MULL_EINVAL: a NULL; MULL_ENOMEM. */
MULL_API int mull_engine_snapshot(mull_engine *engine, mull_snapshot **snapshot);

/* mull_snapshot_free frees a snapshot, on any thread, be its engine closed or not. NULL is fine. */
MULL_API void mull_snapshot_free(mull_snapshot *snapshot);

/* MULL_UNKNOWN is a number of mull_depth that its transport can't tell. */
#define MULL_UNKNOWN UINT64_MAX

/* mull_depth is how many messages of a queue are `ready`, wait for their time (`delayed`), or are
 * `claimed`, and when the next one that waits is due (`next_due_ms`, of the wall clock; INT64_MAX:
 * none, or unknown). */
typedef struct mull_depth {
    uint64_t ready, delayed, claimed;
    int64_t next_due_ms;
} mull_depth;

/* mull_depth_fn gets the answer, where `status` is 0; else why there is none, and all
 * of it is MULL_UNKNOWN. */
typedef void (*mull_depth_fn)(int status, const mull_depth *depth, void *data);

/* mull_queue_depth asks a transport for the depth of a queue; answered on a later turn, if this
 * returns 0. Errors as of mull_publish. */
MULL_API int mull_queue_depth(mull_engine *engine, const char *transport, const char *queue,
                              mull_depth_fn answer, void *data);

/* mull_engine_turn, with a test's clock: fires every timer that is due and runs the loop until
 * nothing is open. It returns when the next timer is due (monotonic), or INT64_MAX: there is none,
 * the clock is no test's, or it is called out of a callback of the engine. */
MULL_API int64_t mull_engine_turn(mull_engine *engine);

/* mull_engine_close stops without grace and frees the engine: at once where the loop is its own
 * and no callback of it runs, else on a later turn; then `closed` is called (NULL: it isn't). A
 * call that is still at work is told by `cancel`, and the engine is there until it was ended with
 * mull_done: out of `cancel`, or by another thread, since "at once" waits for it. Not out of a
 * `problem` in which this engine says what it refuses, nor out of a transport's ops. Until it is
 * gone, what takes messages or asks a transport answers MULL_ESTATE, and to close it once more does
 * nothing. NULL is fine. */
MULL_API void mull_engine_close(mull_engine *engine, void (*closed)(void *data), void *data);

#ifdef __cplusplus
}
#endif

#endif
