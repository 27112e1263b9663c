/* digest.c: the content hash of a table: all that a verdict can depend on or show. */
#include <string.h>

#include "base/hash.h"
#include "shape.h"

/* Every piece goes in with its size, and numbers in one byte order, so that no two tables run into
 * the same bytes. */

static void add_number(mull__digest *digest, uint64_t number)
{
    unsigned char bytes[8];
    for (unsigned i = 0; i < 8; i++)
        bytes[i] = (unsigned char)(number >> (8 * i));
    mull__digest_add(digest, bytes, sizeof bytes);
}

static void add_real(mull__digest *digest, double number)
{
    uint64_t bits;
    memcpy(&bits, &number, sizeof bits);
    add_number(digest, bits);
}

static void add_text(mull__digest *digest, const char *text)
{
    add_number(digest, text != NULL);
    if (text)
        mull__digest_add(digest, text, strlen(text));
}

static void add_literal(mull__digest *digest, const mull_field *literal)
{
    add_text(digest, literal->name);
    add_number(digest, literal->value.kind);
    switch (literal->value.kind) {
    case MULL_BOOLEAN:
        add_number(digest, literal->value.as.boolean != 0);
        break;
    case MULL_INTEGER:
        add_number(digest, (uint64_t)literal->value.as.integer);
        break;
    case MULL_NUMBER:
        add_real(digest, literal->value.as.number);
        break;
    case MULL_STRING:
        add_text(digest, literal->value.as.string);
        break;
    case MULL_NIL:
    case MULL_LIST:
    case MULL_MAP:
        break; /* never literals */
    }
}

static void add_tier(mull__digest *digest, const mull__plain_tier *tier)
{
    add_number(digest, (uint64_t)tier->on);
    add_number(digest, (uint64_t)tier->attempts);
    add_number(digest, tier->delay_count);
    for (size_t i = 0; i < tier->delay_count; i++)
        add_number(digest, (uint64_t)tier->delays[i]);
    add_number(digest, (uint64_t)tier->base_ms);
    add_number(digest, tier->backoff);
    add_real(digest, tier->factor);
    add_number(digest, (uint64_t)tier->max_delay_ms);
    add_real(digest, tier->jitter);
}

static void add_rule(mull__digest *digest, const mull__rule *rule)
{
    add_text(digest, rule->source.file);
    add_number(digest, (uint64_t)rule->source.line);
    add_number(digest, rule->type);
    add_number(digest, rule->matcher.kind);
    add_number(digest, rule->matcher.function);
    add_number(digest, rule->matcher.field_count);
    for (size_t i = 0; i < rule->matcher.field_count; i++)
        add_literal(digest, &rule->matcher.fields[i]);
    add_tier(digest, &rule->retry);
    add_tier(digest, &rule->redeliver);
    add_number(digest, rule->end);
    add_text(digest, rule->queue);
    add_text(digest, rule->note);
}

static void add_scope(mull__digest *digest, const mull__scope *scope)
{
    const mull__bounds *bounds = &scope->layer.bounds;
    add_text(digest, scope->label);
    add_text(digest, bounds->dead_letter_queue);
    add_number(digest, (uint64_t)bounds->max_age_ms);
    add_number(digest, (uint64_t)bounds->max_attempts);
    add_number(digest, (uint64_t)bounds->max_deliveries);
    add_number(digest, scope->rule_count);
    for (size_t i = 0; i < scope->rule_count; i++)
        add_rule(digest, &scope->rules[i]);
}

void mull__table_digest(const mull__table *table, char hex[33])
{
    mull__digest digest;
    mull__digest_begin(&digest);
    add_number(&digest, table->type_count);
    for (size_t i = 0; i < table->type_count; i++) {
        add_text(&digest, table->types[i].name);
        add_number(&digest, table->types[i].parent);
    }
    add_number(&digest, table->function_count);
    add_number(&digest, table->scope_count);
    for (size_t i = 0; i < table->scope_count; i++)
        add_scope(&digest, &table->scopes[i]);
    mull__digest_end(&digest, hex);
}
