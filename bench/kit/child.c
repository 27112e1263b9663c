#include "kit/child.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

/* spawn gives 0 where the program runs with `in` and `out`. */
static int spawn(pid_t *pid, const char *const *argv, int in, int out)
{
    union {
        const char *const *words;
        char **argv;
    } given = {.words = argv};
    posix_spawn_file_actions_t files;
    if (posix_spawn_file_actions_init(&files) != 0)
        return -1;
    posix_spawn_file_actions_adddup2(&files, in, STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&files, out, STDOUT_FILENO);
    posix_spawn_file_actions_addopen(&files, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    int status = posix_spawnp(pid, argv[0], &files, NULL, given.argv, environ);
    posix_spawn_file_actions_destroy(&files);
    return status;
}

int bench_child_start(bench_child *child, const char *const *argv)
{
    int in[2], out[2];
    if (pipe2(in, O_CLOEXEC) != 0)
        return -1;
    if (pipe2(out, O_CLOEXEC) != 0) {
        close(in[0]), close(in[1]);
        return -1;
    }
    int status = spawn(&child->pid, argv, in[0], out[1]);
    close(in[0]), close(out[1]);
    if (status != 0) {
        close(in[1]), close(out[0]);
        return -1;
    }
    signal(SIGPIPE, SIG_IGN); /* one that ended is told by its answer */
    child->to = fdopen(in[1], "w");
    child->from = fdopen(out[0], "r");
    if (child->to && child->from)
        return 0;
    bench_child_end(child);
    return -1;
}

int bench_child_ask(bench_child *child, const char *line, char *answer, size_t size)
{
    if (line && (fprintf(child->to, "%s\n", line) < 0 || fflush(child->to) != 0))
        return -1;
    if (!fgets(answer, (int)size, child->from))
        return -1;
    char *end = strchr(answer, '\n');
    if (!end)
        return -1;
    *end = '\0';
    return 0;
}

int bench_child_end(bench_child *child)
{
    if (child->to)
        fclose(child->to);
    if (child->from)
        fclose(child->from);
    int status;
    if (waitpid(child->pid, &status, 0) != child->pid)
        return -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}
