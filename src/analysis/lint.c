/* lint.c: see lint.h. */
#include "lint.h"

#include <stdlib.h>

#include "base/alloc.h"

static int goes_on(const mull__finder *f)
{
    return !f->stopped && f->status == MULL_OK;
}

static void search_rules(mull__finder *f, unsigned at, mull__lint *look, const mull__scope *scope)
{
    const mull__fate *fates = mull__fates_in(f->fates, scope);
    for (size_t i = 0; i < mull__scope_rules(scope) && goes_on(f); i++) {
        const mull__rule *rule = mull__rule_at(scope, i);
        if (at & (mull__written_in(scope, rule) ? MULL__OWN_RULES : MULL__INCLUDED_RULES))
            look(f, &(mull__lint_item){scope, rule, &fates[i]});
    }
}

void mull__search(mull__finder *f, unsigned at, mull__lint *look)
{
    f->stopped = 0;
    if (at == MULL__ONCE)
        look(f, &(mull__lint_item){NULL, NULL, NULL});
    for (size_t i = 0; i < f->table->scope_count && goes_on(f); i++) {
        const mull__scope *scope = &f->table->scopes[i];
        const mull__rules *declared = &scope->unrecoverable;
        if (at & MULL__SCOPES)
            look(f, &(mull__lint_item){scope, NULL, NULL});
        if (at & (MULL__OWN_RULES | MULL__INCLUDED_RULES))
            search_rules(f, at, look, scope);
        for (size_t j = 0; at & MULL__DECLARATIONS && j < declared->count && goes_on(f); j++)
            look(f, &(mull__lint_item){scope, &declared->items[j], NULL});
    }
}

void mull__found(const mull__finder *f, const mull__rule *rule, mull__finding finding)
{
    if (!finding.kind)
        finding.kind = f->kind;
    if (rule) {
        finding.file = rule->source.file;
        finding.line = rule->source.line;
        finding.scope = rule->source.scope;
        finding.type = rule->source.type;
    }
    f->tell(f->data, &finding);
}

int mull__can_go_on(mull__finder *f, int64_t ns)
{
    if (f->effort > 0)
        f->effort -= ns;
    return f->effort > 0;
}

void mull__stop(mull__finder *f, const char *word, const char *file, int line)
{
    f->stopped = 1;
    mull__found(f, NULL,
                (mull__finding){.kind = MULL__STOPPED, .file = file, .line = line, .word = word});
}

/* ---- Rules that are included ----------------------------------------------------------------- */

static uint64_t hash_of_source(const mull_rule *source)
{
    const uint64_t words[] = {(uint64_t)source->line, mull__hash_text(source->type),
                              mull__hash_text(source->file), mull__hash_text(source->scope)};
    return mull__hash_words(words, sizeof words / sizeof *words);
}

static int by_value(const void *a, const void *b)
{
    uint64_t one = *(const uint64_t *)a, other = *(const uint64_t *)b;
    return (one > other) - (one < other);
}

static void keep_included(mull__finder *f, const mull__lint_item *item)
{
    f->included[f->included_count++] = hash_of_source(&item->rule->source);
}

void mull__keep_included(mull__finder *f)
{
    f->included = mull__zalloc(f->allocator, f->table->rule_count, sizeof *f->included);
    f->status = f->included ? MULL_OK : MULL_ENOMEM;
    if (f->status != MULL_OK)
        return;
    mull__search(f, MULL__INCLUDED_RULES, keep_included);
    qsort(f->included, f->included_count, sizeof *f->included, by_value);
}

int mull__is_included(const mull__finder *f, const mull__rule *rule)
{
    if (f->included_count == 0)
        return 0;
    uint64_t hash = hash_of_source(&rule->source);
    return bsearch(&hash, f->included, f->included_count, sizeof hash, by_value) != NULL;
}

const mull__rule *mull__first_written_in(const mull__scope *writer, const mull__scope *scope)
{
    for (size_t i = 0; i < mull__scope_rules(scope); i++)
        if (mull__written_in(writer, mull__rule_at(scope, i)))
            return mull__rule_at(scope, i);
    return NULL;
}
