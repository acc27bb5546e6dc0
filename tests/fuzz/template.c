/* SPDX-License-Identifier: GPL-3.0-or-later */
/* template.c -- any bytes as a chat template, run with two conversations */
#include <stdlib.h>
#include <string.h>
#include "survive.h"
#include "text/template.h"
#include "text/utf8.h"

struct run { const char *text; size_t n; const char *json, *date; };

/* The result must be UTF-8, and the same when the template is run again. */
static void render(void *arg)
{
	const struct run *r = arg;
	json_t *variables = json_loads(r->json, JSON_ALLOW_NUL, NULL);
	struct template *t = template_read("fuzz", r->n, r->text);
	size_t n, again;
	char *s = template_run(t, variables, r->date, &n);
	char *same = template_run(t, variables, r->date, &again);

	if (utf8_valid(s, n) != n || n != again || memcmp(s, same, n))
		abort();
	survive_use(s, n);
	free(s), free(same);
	template_free(t);
	json_decref(variables);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	static const char *const conversations[] = {
		"{\"messages\": [{\"role\": \"system\", \"content\": \" caf\\u00e9 \\u03a3\\n\"}, {\"role\": "
		"\"user\", \"content\": \"a\\u0000b\", \"n\": -7, \"f\": 0.1}, {\"role\": \"assistant\", "
		"\"content\": null, \"tool_calls\": [{\"function\": {\"name\": \"f\", \"arguments\": "
		"{\"a\": [1, true, {}]}}}]}], \"tools\": null, \"bos_token\": \"<s>\"}",
		"{\"messages\": [{\"role\": \"user\", \"content\": [{\"type\": \"text\", \"text\": "
		"\"x\"}]}], \"tools\": [{\"function\": {\"name\": \"f\"}}], "
		"\"add_generation_prompt\": false}" };

	for (int i = 0; i < 2; i++) {
		struct run r = { (const char *)data, n, conversations[i], i ? "2024-02-29" : NULL };

		attempt(render, &r);
		survive_forget();
	}
	return 0;
}
