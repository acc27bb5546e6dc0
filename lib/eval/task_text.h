/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * task_text.h -- templates and filters of the texts of tasks (task.h)
 *
 * Source: lm-evaluation-harness 0.4.13, lm_eval/tasks/hellaswag/utils.py, preprocess().
 */
#ifndef EVAL_TASK_TEXT_H
#define EVAL_TASK_TEXT_H
#include <jansson.h>

/*
 * Replaces {NAME} by the member NAME of the item, a text, and {NAME:FILTER} by this text after the filter;
 * free() it. Filters: strip (text/strip.h), capitalize (text/capitalize.h), blanks (a blank for each
 * underscore). Fatal error if the item has no such text.
 */
char *task_fill(const char *template, const json_t *item);

/* The clean-up of HellaSwag's texts, which are from WikiHow: white space at both ends is removed; " [title]"
 * becomes ". "; text in brackets on one line is removed; each pair of blanks becomes one. free() it. */
char *task_clean_wikihow(const char *s);
#endif
