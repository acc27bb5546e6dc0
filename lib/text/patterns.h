/* SPDX-License-Identifier: GPL-3.0-or-later */
/* patterns.h -- regular expressions used by several files */
#ifndef TEXT_PATTERNS_H
#define TEXT_PATTERNS_H

/* The pattern by which GPT-2's code cuts words, the same in Oniguruma's dialect and in PCRE2's. */
#define PATTERN_GPT2 "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+"
/* For use inside brackets: a character of a word (\w) as Rust's regex defines it, in PCRE2's dialect. */
#define PATTERN_WORD "\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}\\p{Join_Control}"
#endif
