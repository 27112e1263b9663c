/* session_out.h: frames on their way out; see session.h. */
#ifndef MULL__AMQP_SESSION_OUT_H
#define MULL__AMQP_SESSION_OUT_H

#include "session.h"

/* mull__amqp_end ends a session: only the first reason stays. MULL_EIO. */
__attribute__((format(printf, 2, 3))) int mull__amqp_end(mull__amqp_session *session,
                                                         const char *format, ...);

/* mull__amqp_write sends bytes. Not 0: the session has ended. */
int mull__amqp_write(mull__amqp_session *session, const void *bytes, size_t size);

/* Frames of the connection, as of mull__amqp_send. */
int mull__amqp_login_send(mull__amqp_session *session);
int mull__amqp_open_send(mull__amqp_session *session);
int mull__amqp_heartbeat_send(mull__amqp_session *session);

#endif
