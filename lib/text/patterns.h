/* SPDX-License-Identifier: GPL-3.0-or-later */
/* patterns.h -- regular expressions that several files know */
#ifndef TEXT_PATTERNS_H
#define TEXT_PATTERNS_H

/* What GPT-2's code cuts words by, in Oniguruma's dialect and in PCRE2's. */
#define PATTERN_GPT2 "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+"
/* Inside brackets, a character of a word (\w) as Rust's regex has it, in PCRE2's dialect. */
#define PATTERN_WORD "\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}\\p{Join_Control}"
#endif
