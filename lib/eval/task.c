/* SPDX-License-Identifier: GPL-3.0-or-later */
/* task.c -- see task.h */
#include "eval/task.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "base/names.h"
#include "eval/task_private.h"
#include "eval/task_text.h"
#include "text/json_lines.h"
#include "text/strip.h"

enum { LETTERS = 4 };

/* ---- the right choice ---- */

static _Noreturn void no_answer(const char *key)
{
	die("'%s' has no answer, as in a set whose answers are not public", key);
}

/* The number of a choice, from 0, of a member that is an integer or its digits, from `first` on. */
static size_t gold_number(const json_t *item, const char *key, json_int_t first, size_t n)
{
	const json_t *v = json_object_get(item, key);
	const char *text = json_string_value(v);
	char *end = NULL;
	json_int_t i = json_is_true(v) ? 1 : json_integer_value(v);

	if (!v || json_is_null(v))
		die("'%s' is missing", key);
	if (text) {
		if (!*strip_begin(text))
			no_answer(key);
		errno = 0;
		i = strtoll(text, &end, 10);
	}
	if ((text && (*end || errno || text[0] == '+')) ||
	    (!text && !json_is_integer(v) && !(json_is_boolean(v) && n == 2 && !first)))
		die("'%s' is not the number of a choice", key);
	if (i == -1)
		no_answer(key);
	if (i < first || i - first >= (json_int_t)n)
		die("'%s' is %lld, expected the number of a choice, %lld to %lld", key, (long long)i,
			(long long)first, (long long)(first + (json_int_t)n - 1));
	return (size_t)(i - first);
}

/* The place of a text in the labels. */
static size_t gold_label(const json_t *item, const char *key, const json_t *labels)
{
	const char *answer = strip_begin(json_member_text(item, key));
	size_t i, found = 0, gold = 0;
	json_t *v;

	if (!*answer)
		no_answer(key);
	json_array_foreach(labels, i, v)
		if (json_is_string(v) && !strcmp(answer, json_string_value(v)))
			found++, gold = i;
	if (found != 1)
		die("'%s' is '%s', expected the label of %s", key, answer, found ? "one choice only" :
			"a choice");
	return gold;
}

/* ---- rows: choices and the right one ---- */

static void check_number(const struct reading *r)
{
	if (json_array_size(r->choices) == 1)
		die("'%s' has one choice, expected two or more", r->task->texts);
}

/* ARC and OpenBookQA: an object of arrays, or an array of objects. In the sets of the authors, the question
 * is an object with the text and the choices. */
static void read_labelled(struct reading *r)
{
	json_t *question = json_object_get(r->item, "question"), *from = r->item, *list, *labels, *v;
	size_t i;

	if (json_is_object(question)) {
		from = question;
		json_object_set_new(r->item, "question_stem",
			json_string(json_member_text(question, "stem")));
	}
	list = json_object_get(from, r->task->texts);
	if (json_is_object(list)) {
		r->choices = json_incref(json_object_get(list, "text"));
		labels = json_incref(json_object_get(list, "label"));
	} else {
		r->choices = json_array();
		labels = json_array();
		json_array_foreach(list, i, v) {
			json_array_append_new(r->choices, json_string(json_member_text(v, "text")));
			json_array_append_new(labels, json_string(json_member_text(v, "label")));
		}
	}
	if (!json_array_size(r->choices) || json_array_size(r->choices) != json_array_size(labels))
		die("'%s' has no texts with a label each", r->task->texts);
	check_number(r);
	r->gold = gold_label(r->item, r->task->gold, labels);
	if (from == question)
		json_object_set(r->item, "question", json_object_get(r->item, "question_stem"));
	json_decref(labels);
}

/* A single member with an array of texts. */
static void read_list(struct reading *r)
{
	r->choices = json_incref(json_object_get(r->item, r->task->texts));
	if (!json_array_size(r->choices))
		die("'%s' is %s, expected an array of texts", r->task->texts,
			r->choices ? "not an array, or empty" : "missing");
	check_number(r);
	r->gold = gold_number(r->item, r->task->gold, 0, json_array_size(r->choices));
}

/* Several members, each a text. */
static json_t *members(const json_t *item, const char *names)
{
	json_t *list = json_array();

	for (size_t n; *names; names += n + (names[n] == ' ')) {
		char *name;

		n = strcspn(names, " ");
		name = xformat("%.*s", (int)n, names);
		json_array_append_new(list, json_string(json_member_text(item, name)));
		free(name);
	}
	return list;
}

static void read_members(struct reading *r)
{
	r->choices = members(r->item, r->task->texts);
	r->gold = gold_number(r->item, r->task->gold, 0, json_array_size(r->choices));
}

static void read_no_yes(struct reading *r)
{
	r->choices = json_pack("[ss]", "no", "yes");
	r->gold = gold_number(r->item, r->task->gold, 0, 2);
}

/* Letters, for texts in the prompt: members A to D, or one array, which becomes these members. */
static void read_letters(struct reading *r)
{
	static const char *const letters[LETTERS] = { "A", "B", "C", "D" };
	const json_t *list = json_object_get(r->item, "choices");
	const json_t *gold = json_object_get(r->item, r->task->gold);

	if (list && json_array_size(list) != LETTERS)
		die("'choices' is not an array of %d texts", LETTERS);
	r->choices = json_array();
	for (size_t i = 0; i < LETTERS; i++) {
		if (list && !json_is_string(json_array_get(list, i)))
			die("'choices' is not an array of %d texts", LETTERS);
		if (list)
			json_object_set(r->item, letters[i], json_array_get(list, i));
		json_array_append_new(r->choices, json_string(letters[i]));
	}
	r->options = members(r->item, r->task->texts);
	r->gold = json_is_string(gold) ? gold_label(r->item, r->task->gold, r->choices) :
		gold_number(r->item, r->task->gold, 0, LETTERS);
}

/* WinoGrande: the sentence up to the gap with each option; what follows the gap is the choice. */
static void read_gap(struct reading *r)
{
	const char *sentence = json_member_text(r->item, "sentence"), *gap = strchr(sentence, '_');
	json_t *v;
	size_t i;
	char *rest;

	if (!gap)
		die("'sentence' has no gap, expected a '_'");
	r->options = members(r->item, r->task->texts);
	r->contexts = json_array();
	json_array_foreach(r->options, i, v)
		json_array_append_new(r->contexts,
			json_sprintf("%.*s%s", (int)(gap - sentence), sentence, json_string_value(v)));
	rest = strip(gap + 1);
	if (!*rest)
		die("'sentence' has no text after the gap");
	r->choices = json_pack("[s]", rest);
	free(rest);
	r->gold = gold_number(r->item, r->task->gold, 1, json_array_size(r->contexts));
}

/* LAMBADA: the word after the last blank; the text before it is the context. */
static void read_last_word(struct reading *r)
{
	const char *text = json_member_text(r->item, r->task->texts), *blank = strrchr(text, ' ');
	const size_t n = blank ? (size_t)(blank - text) : 0;

	if (!*(blank ? blank + 1 : text))
		die("'%s' has no word after its last blank", r->task->texts);
	r->choices = json_pack("[s]", blank ? blank + 1 : text);
	json_object_set_new(r->item, "context", json_stringn(text, n));
}

/* The same word as an answer, which ends at a line break. */
static void read_answer_word(struct reading *r)
{
	read_last_word(r);
	r->answer = xformat("%s", json_string_value(json_array_get(r->choices, 0)));
	if (strchr(r->answer, '\n'))
		die("'%s' has a line break after its last blank, expected a word", r->task->texts);
}

/* GSM8K: the solution, whose last line is "#### " and the number. */
static void read_solution(struct reading *r)
{
	const char *mark = NULL;

	r->answer = xformat("%s", json_member_text(r->item, r->task->gold));
	for (const char *s = r->answer; (s = strstr(s, "####"));)
		mark = s += strlen("####");
	if (!mark || *mark != ' ' || !strpbrk(mark, "0123456789") || strcspn(mark, "\n") != strlen(mark))
		die("'%s' does not end in '#### ' and a number", r->task->gold);
}

/* The same, but the answer is the number only. An example may have its answer in the member `target`. */
static void read_number(struct reading *r)
{
	char *mark, *number;

	if (r->example && !json_object_get(r->item, r->task->gold)) {
		r->answer = xformat("%s", json_member_text(r->item, "target"));
		return;
	}
	read_solution(r);
	for (number = r->answer; (mark = strstr(number, "####"));)
		number = mark + strlen("####");
	number = strip(number);
	free(r->answer);
	r->answer = number;
}

/* ---- the table ---- */

static const char *const columns[] = { "question", "A", "B", "C", "D", "answer", NULL };
static const char *const until[] = { "Question:", "</s>", "<|im_end|>", NULL };
static const char *const until_line[] = { "\n", NULL };
static const char *const until_cot[] = { "Q:", "</s>", "<|im_end|>", NULL };

static const struct task tasks[] = {
	{ "arc_easy", "Question: {question}\nAnswer:", read_labelled, .texts = "choices",
		.gold = "answerKey" },
	{ "arc_challenge", "Question: {question}\nAnswer:", read_labelled, .texts = "choices",
		.gold = "answerKey" },
	{ "hellaswag", "{activity_label}: {ctx_a} {ctx_b:capitalize}", read_list, .texts = "endings",
		.gold = "label", .clean = task_clean_wikihow },
	{ "piqa", "Question: {goal}\nAnswer:", read_members, .texts = "sol1 sol2", .gold = "label" },
	{ "winogrande", "", read_gap, .texts = "option1 option2", .gold = "answer" },
	{ "boolq", "{passage}\nQuestion: {question}?\nAnswer:", read_no_yes, .gold = "label" },
	{ "openbookqa", "{question_stem}", read_labelled, .texts = "choices", .gold = "answerKey" },
	{ "lambada", "{context}", read_last_word, .texts = "text" },
	{ "lambada_generated", "{context}", read_answer_word, .texts = "text", .match = "exact",
		.until = until_line },
	{ "mmlu", "{question:strip}\nA. {A}\nB. {B}\nC. {C}\nD. {D}\nAnswer:", read_letters,
		.texts = "A B C D", .gold = "answer", .examples = 5, .columns = columns,
		.description = "The following are multiple choice questions (with answers) about "
			"{subject:blanks}.\n\n" },
	{ "ceval", "{question:strip}\nA. {A}\nB. {B}\nC. {C}\nD. {D}\n答案：", read_letters,
		.texts = "A B C D", .gold = "answer", .examples = 5, .columns = columns,
		.description = "以下是中国关于{subject}的单项选择题，请选出其中的正确答案。\n\n" },
	{ "gsm8k", "Question: {question}\nAnswer:", read_solution, .gold = "answer", .examples = 5,
		.match = "gsm8k", .until = until },
	{ "gsm8k_cot", "Q: {question}\nA:", read_number, .gold = "answer", .examples = 8,
		.match = "gsm8k-cot", .until = until_cot },
	{ NULL },
};

const struct task *task_of(const char *name)
{
	for (const struct task *t = tasks; t->name; t++)
		if (!strcmp(t->name, name))
			return t;
	return NULL;
}

char *task_names(void)
{
	return names_of_rows(tasks, sizeof *tasks);
}
