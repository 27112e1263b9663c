/* chain.h: rules as they are said, and what each does when it hears a word. The words, and what is
 * wrong with them, are in lua/mulligan/policy/chain.lua.
 *
 * A rule is a table, at the end a plain one as docs/plain-rules.md has it, and besides:
 *
 *   [1]              its state, which says what words may follow
 *   [2], [3], ...    each word that was said, and its line
 *   touched          it heard something wrong
 *
 * It is the data of its stage, the object that its chain is said to. A stage is a userdata: all
 * have the same metatable. */
#ifndef MULL__CHAIN_H
#define MULL__CHAIN_H

#include <lua.h>

/* mull__chain_word(leads_to, word, refuse, work, field, known) gives the act of a word:
 *
 *   leads_to                     state -> the state that the word leads to from there
 *   refuse(rule, here)           is called where it may not stand, and what it gives is the word's
 *   work(here, n, ...)           gives the value for its arguments
 *
 * The word gives the rule that value as its `field`. For the same arguments `work` isn't called
 * again: the table `known` has the value then, unless `work` gave true besides. */
int mull__chain_word(lua_State *L);

/* mull__chain_beginner(stages) gives begin(rules, label, here, type), which makes a rule, appends
 * it to the list `rules`, and gives its stage, with `stages` as its metatable, and the rule. */
int mull__chain_beginner(lua_State *L);

/* mull__chain_opener(stages, book, otherwise) gives the act of `on`, for most rules: they have a
 * name and no matcher, and no preset says them. The others are left to the act `otherwise`. */
int mull__chain_opener(lua_State *L);

#endif
