/* conforms.c: runs the conformance suite on the board, which has data and therefore needs a program
 * of its own. P is the prefix that mulligan was installed to.
 *
 *   cc conforms.c board.c P/share/mulligan/conformance.c \
 *       $(pkg-config --cflags --libs mulligan libuv) -pthread -o conforms
 */
#include "board.h"

#include <mulligan/conformance.h>
#include <stdio.h>

/* Each case begins with an empty place. */
static int fresh(void *data, char *url, size_t size)
{
    mull_conformance_options *options = data;
    board_free(options->ops_data);
    options->ops_data = board_new();
    snprintf(url, size, "board:");
    return options->ops_data ? 0 : MULL_ENOMEM;
}

static void report(void *data, const char *name, mull_conformance_end end, const char *text)
{
    static const char *const words[] = {"failed", "passed", "skipped"};
    (void)data;
    printf("%s: %s%s%s\n", words[end], name, *text ? ": " : "", text);
}

int main(void)
{
    mull_conformance_options options = MULL_INIT(mull_conformance_options);
    options.ops = &board_transport;
    options.fresh = fresh;
    options.report = report;
    options.data = &options;
    int failed = mull_conformance(&options);
    board_free(options.ops_data);
    return failed != 0;
}
