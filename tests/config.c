/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * config -- config.json and the table of architectures: keys and defaults, requirements for every row, and
 * the position of the rows of fused layers
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "base/error.h"
#include "case.h"
#include "model/config.h"
#include "model/layer_ref.h"
#include "model/rope.h"

static size_t rows(void)
{
	size_t n = 0;

	while (architectures[n].name)
		n++;
	return n;
}

static struct config parse(const char *more)
{
	bool mistral = strstr(more, "sliding");
	char *text = xformat("{\"architectures\": [\"%s\"], \"hidden_size\": 64, \"num_attention_heads\": 4, "
		"\"intermediate_size\": 100, \"num_hidden_layers\": 3, \"vocab_size\": 50%s%s}",
		mistral && strstr(more, "qwen") ? "Qwen2ForCausalLM" :
		mistral ? "MistralForCausalLM" : "LlamaForCausalLM",
		mistral ? ", \"num_key_value_heads\": 4" : "", more);
	struct config c = config_parse("x", text);

	free(text);
	return c;
}

static void keys(void **unused)
{
	struct config c = parse("");
	struct layer_ref layer;
	size_t block;
	const char *rest;
	double f[8];

	(void)unused;
	assert_int_equal(c.stack->kv_heads, 4);
	assert_int_equal(c.stack->head_dim, 16);
	assert_int_equal(c.bos, 1);
	assert_int_equal(stack_out(c.stack, ROLE_QKV), 192);
	assert_true(layer_ref_find(&c, "/model/layers/2/mlp/up_proj", &layer));
	assert_true(layer.stack == c.stack && layer.block == 2 && layer.row == 5);
	assert_false(layer_ref_find(&c, "/model/layers/3/mlp/up_proj", &layer)); /* there are 3 */
	assert_true(config_block(&c, "/model/layers/3/mlp/up_proj", &block, &rest) && block == 3);
	assert_string_equal(rest, "mlp/up_proj");
	assert_false(layer_ref_find(&c, "/model/layers/2/mlp/up_projx", &layer));
	assert_false(layer_ref_find(&c, "/model/layers/x/mlp/up_proj", &layer));
	assert_false(layer_ref_find(&c, "/model/layersx/1/mlp/up_proj", &layer));
	assert_true(config_block(&c, "/model/layers/7", &block, &rest) && block == 7 && !*rest);

	c = parse(", \"rope_theta\": 100.0, \"eos_token_id\": [2, 5], \"bos_token_id\": 7,"
		"\"head_dim\": null");
	rope_frequencies(&c.stack->rope[ROPE_FULL], c.stack->rotary, 10, f);
	assert_true(f[0] == 1 && fabs(f[4] - 0.1) < 1e-15);
	assert_true(c.eos_count == 2 && c.eos[1] == 5 && c.bos == 7);

	c = parse(", \"eos_token_id\": [50, -1, 4], \"bos_token_id\": 50");
	assert_true(c.eos_count == 1 && c.eos[0] == 4 && c.bos == -1);
	c = parse(", \"eos_token_id\": null, \"bos_token_id\": null");
	assert_true(c.eos_count == 0 && c.bos == -1);

	c = parse(", \"sliding_window\": 9");
	assert_true(stack_window(c.stack, 0) == 9 && stack_window(c.stack, 2) == 9);
	c = parse(", \"sliding_window\": null");
	assert_int_equal(stack_window(c.stack, 0), 0);
	c = parse(", \"sliding_window\": 9, \"x\": \"qwen\", \"use_sliding_window\": true,"
		"\"max_window_layers\": 2");
	assert_true(stack_window(c.stack, 1) == 0 && stack_window(c.stack, 2) == 9);
	config_free(&c);
	c = parse(", \"sliding_window\": 9, \"x\": \"qwen\"");
	assert_int_equal(stack_window(c.stack, 2), 0);
}

/* Without any key except model_type: the defaults of classes of transformers 5, configuration_TYPE.py. */
static void defaults_of_classes(void **unused)
{
	static const struct {
		const char *type;
		size_t vocab, hidden, blocks, heads, kv_heads, head_dim, intermediate, positions;
		double eps;
		long bos, eos;
		bool tied;
		size_t window, rotary;
		enum activation activation;
	} expected[] = {
		{ "llama", 32000, 4096, 32, 32, 32, 128, 11008, 2048, 1e-6, 1, 2, false, 0, 128,
		  ACTIVATION_SILU },
		{ "mistral", 32000, 4096, 32, 32, 8, 128, 14336, 131072, 1e-6, 1, 2, false, 4096, 128,
		  ACTIVATION_SILU },
		{ "ministral", 32000, 4096, 32, 32, 8, 128, 14336, 131072, 1e-6, 1, 2, false, 4096, 128,
		  ACTIVATION_SILU },
		{ "qwen2", 151936, 4096, 32, 32, 32, 128, 22016, 32768, 1e-6, -1, -1, false, 0, 128,
		  ACTIVATION_SILU },
		{ "qwen2_vl_text", 152064, 8192, 80, 64, 8, 128, 29568, 32768, 1e-5, 151643, 151645, false, 0,
		  128, ACTIVATION_SILU },
		{ "qwen2_5_vl_text", 152064, 8192, 80, 64, 8, 128, 29568, 32768, 1e-5, 151643, 151645, false,
		  0, 128, ACTIVATION_SILU },
		{ "qwen3", 151936, 4096, 32, 32, 32, 128, 22016, 32768, 1e-6, -1, -1, false, 0, 128,
		  ACTIVATION_SILU },
		{ "phi3", 32064, 3072, 32, 32, 32, 96, 8192, 4096, 1e-5, 1, 32000, false, 0, 96,
		  ACTIVATION_SILU },
		{ "gemma", 256000, 3072, 28, 16, 16, 256, 24576, 8192, 1e-6, 2, 1, true, 0, 256,
		  ACTIVATION_GELU_TANH },
		{ "gemma2", 256000, 2304, 26, 8, 4, 256, 9216, 8192, 1e-6, 2, 1, true, 4096, 256,
		  ACTIVATION_GELU_TANH },
		{ "gemma3_text", 262208, 2304, 26, 8, 4, 256, 9216, 131072, 1e-6, 2, 1, true, 4096, 256,
		  ACTIVATION_GELU_TANH },
		{ "gpt2", 50257, 768, 12, 12, 12, 64, 3072, 1024, 1e-5, 50256, 50256, true, 0, 0,
		  ACTIVATION_GELU_TANH },
		{ "opt", 50272, 768, 12, 12, 12, 64, 3072, 2048, 1e-5, 2, 2, true, 0, 0, ACTIVATION_RELU },
		{ "gpt_neox", 50432, 6144, 44, 64, 64, 96, 24576, 2048, 1e-5, 0, 2, false, 0, 24,
		  ACTIVATION_GELU },
		{ "mixtral", 32000, 4096, 32, 32, 8, 128, 14336, 131072, 1e-5, 1, 2, false, 0, 128,
		  ACTIVATION_SILU },
		{ "qwen2_moe", 151936, 2048, 24, 16, 16, 128, 5632, 32768, 1e-6, -1, -1, false, 0, 128,
		  ACTIVATION_SILU },
		{ "qwen3_moe", 151936, 2048, 24, 32, 4, 64, 6144, 32768, 1e-6, -1, -1, false, 0, 64,
		  ACTIVATION_SILU },
	};

	(void)unused;
	assert_int_equal(sizeof expected / sizeof *expected, rows());
	for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
		CASE("expected[%zu] %s", i, expected[i].type);
		char *text = xformat("{\"model_type\": \"%s\"}", expected[i].type);
		struct config c = config_parse("x", text);

		assert_int_equal(c.vocab, expected[i].vocab);
		assert_int_equal(c.stack->hidden, expected[i].hidden);
		assert_int_equal(c.stack->blocks, expected[i].blocks);
		assert_int_equal(c.stack->heads, expected[i].heads);
		assert_int_equal(c.stack->kv_heads, expected[i].kv_heads);
		assert_int_equal(c.stack->head_dim, expected[i].head_dim);
		assert_int_equal(c.stack->intermediate, expected[i].intermediate);
		assert_int_equal(c.positions, expected[i].positions);
		assert_true(c.stack->eps == expected[i].eps && c.tied == expected[i].tied);
		assert_int_equal(c.bos, expected[i].bos);
		assert_int_equal(c.eos_count, expected[i].eos >= 0);
		assert_true(!c.eos_count || c.eos[0] == expected[i].eos);
		assert_int_equal(stack_window(c.stack, 0), expected[i].window);
		assert_int_equal(stack_window(c.stack, c.stack->blocks - 1),
			strcmp(expected[i].type, "gemma2") ? expected[i].window : 0);
		assert_int_equal(c.stack->rotary, expected[i].rotary);
		assert_int_equal(c.stack->activation, expected[i].activation);
		assert_true(c.stack->parallel == !strcmp(expected[i].type, "gpt_neox"));
		if (!c.arch->position)
			assert_true(c.stack->rope[ROPE_FULL].theta ==
				(!strcmp(expected[i].type, "gemma3_text") ||
				strstr(expected[i].type, "_vl_text") ||
				!strcmp(expected[i].type, "mixtral") ? 1e6 : 10000));
		config_free(&c);
		free(text);
	}
}

/* Experts: defaults of classes, keys with different names, and the blocks that have experts. */
static void experts(void **unused)
{
	static const struct {
		const char *type, *more;
		size_t experts, chosen, expert, shared;
		bool normalized;
		const char *sparse;	/* of the first blocks */
	} expected[] = {
		{ "mixtral", "",
		  8, 2, 14336, 0, true, "1111" },
		{ "mixtral", ", \"num_local_experts\": 4, \"num_experts\": 3, \"intermediate_size\": 9",
		  3, 2, 9, 0, true, "1111" },
		{ "mixtral", ", \"num_local_experts\": 4, \"decoder_sparse_step\": 2, "
		  "\"norm_topk_prob\": false",
		  4, 2, 14336, 0, true, "1111" },
		{ "qwen2_moe", "",
		  60, 4, 1408, 5632, false, "1111" },
		{ "qwen2_moe", ", \"num_local_experts\": 4, \"norm_topk_prob\": true, "
		  "\"mlp_only_layers\": null",
		  60, 4, 1408, 5632, true, "1111" },
		{ "qwen2_moe", ", \"mlp_only_layers\": [1, 77, -1, 3]",
		  60, 4, 1408, 5632, false, "1010" },
		{ "qwen3_moe", ", \"decoder_sparse_step\": 2",
		  128, 8, 768, 0, false, "0101" },
		{ "qwen3_moe", ", \"decoder_sparse_step\": 3, \"mlp_only_layers\": [5]",
		  128, 8, 768, 0, false, "001000" },
		{ "qwen3_moe", ", \"num_local_experts\": 9, \"num_experts\": 30",
		  9, 8, 768, 0, false, "1111" },
		{ "qwen3_moe", ", \"num_experts\": 30",
		  30, 8, 768, 0, false, "1111" },
		{ "qwen2", ", \"num_experts\": 30",
		  0, 0, 0, 0, false, "0000" },
	};

	(void)unused;
	for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
		CASE("expected[%zu] %s", i, expected[i].type);
		char *text = xformat("{\"model_type\": \"%s\"%s}", expected[i].type, expected[i].more);
		struct config c = config_parse("x", text);
		const struct stack *s = c.stack;

		assert_int_equal(s->experts, expected[i].experts);
		assert_int_equal(s->chosen, expected[i].chosen);
		assert_int_equal(s->expert, expected[i].expert);
		assert_int_equal(s->shared, expected[i].shared);
		assert_int_equal(s->normalized, expected[i].normalized);
		for (size_t b = 0; expected[i].sparse[b]; b++)
			assert_int_equal(stack_sparse(s, b), expected[i].sparse[b] == '1');
		config_free(&c);
		free(text);
	}
}

/* Values that only some classes have, in models with one block of each kind. */
static void defaults_of_gemma(void **unused)
{
	struct config c = config_parse("x", "{\"model_type\": \"gemma2\", \"num_hidden_layers\": 4}");

	(void)unused;
	assert_true(c.stack->attention_cap == 50 && c.logit_cap == 30 && c.embedding_scale == 48);
	assert_true(c.stack->attention_scale == 1.0 / 16);
	for (size_t i = 0; i < 4; i++)
		assert_true(stack_window(c.stack, i) == (i % 2 ? 0 : 4096) &&
			stack_rope(c.stack, i) == ROPE_FULL);
	config_free(&c);
	c = config_parse("x", "{\"model_type\": \"gemma3_text\", \"num_hidden_layers\": 7}");
	assert_true(c.stack->attention_cap == 0 && c.logit_cap == 0);
	for (size_t i = 0; i < 7; i++) {
		CASE("block %zu", i);
		assert_int_equal(stack_window(c.stack, i), i == 5 ? 0 : 4096);
		assert_int_equal(stack_rope(c.stack, i), i == 5 ? ROPE_FULL : ROPE_SLIDING);
	}
	assert_true(c.stack->rope[ROPE_SLIDING].theta == 10000);
	config_free(&c);
}

/* The path of a layer is the path of its members. */
static void check_path(const struct layer_ref *layer)
{
	char *path = layer_ref_path(layer);

	assert_string_equal(path, layer->path);
	free(path);
}

/* Requirements of other files for every row of the table. */
static void rows_are_whole(void **unused)
{
	(void)unused;
	for (const struct architecture *a = architectures; a->name; a++) {
		CASE("%s", a->name);
		char *text = xformat("{\"model_type\": \"%s\", \"mlp_only_layers\": [0]}", a->model_type);
		struct config c = config_parse("x", text);
		struct layer_ref found, end[ENDS];
		size_t patterns = 0;
		bool made[ROLES] = { false };

		assert_ptr_equal(architecture_find(a->model_type, "Other"), a);
		assert_ptr_equal(architecture_find(NULL, a->name), a);
		assert_ptr_equal(c.arch, a);
		assert_true(c.stacks == 1 && c.stack->arch == a && !c.stack->first &&
			c.blocks == c.stack->blocks);
		while (a->layout[patterns])
			patterns++;
		assert_string_equal(a->layout[patterns - 1], "*");
		assert_string_equal(a->layout[0], a->embedding);
		assert_int_equal(!c.stack->rotary, a->position != NULL);
		assert_int_equal(!a->head_norm[0], !a->head_norm[1]);
		/* stack_rope() reads slides */
		assert_true(!a->local_theta_key || a->sliding_kind == SLIDING_PATTERN);
		assert_int_equal(a->sliding_kind == SLIDING_PATTERN, a->absent.pattern > 0);
		assert_true(!a->before_key || (!a->parallel && !a->norm[AFTER_MLP]));
		assert_true(a->position || !a->position_offset);
		assert_true(a->buffers && a->final_norm && a->head && a->norm[BEFORE_ATTENTION]);
		for (const struct linear_row *l = a->linear; l->name; l++) {
			const size_t at = stack_has(c.stack, 1, l) ? 1 : 0;
			const size_t last = stack_copies(c.stack, l) - 1;
			char *path = stack_expert_path(c.stack, at, l->name, last);
			char *beyond = stack_expert_path(c.stack, at, l->name, last + 1);

			assert_false(made[l->role]);
			made[l->role] = true;
			assert_true(l == a->linear || l->projection >= l[-1].projection);
			assert_int_equal(l->order >= ROWS_FUSED, l->fused != NULL);
			assert_true(layer_ref_find(&c, path, &found));
			assert_true(found.stack == c.stack && found.block == at && found.expert == last);
			assert_ptr_equal(layer_ref_row(&found), l);
			check_path(&found);
			assert_int_equal(layer_ref_input(&c, &found),
				config_input(&c, at, l->projection, last));
			assert_true(!last || !layer_ref_find(&c, beyond, &found));
			assert_true(config_input(&c, at, l->projection, last) <
				config_input(&c, at + 1, PROJECTION_QKV, 0));
			free(path), free(beyond);
		}
		assert_int_equal(layer_ref_ends(&c, end), 2);
		for (int i = 0; i < 2; i++) {
			assert_true(layer_ref_find(&c, i ? a->embedding : a->head, &found));
			assert_memory_equal(&found, &end[i], sizeof found);
			assert_null(layer_ref_row(&found));
			check_path(&found);
		}
		assert_true(layer_ref_input(&c, &end[0]) + 2 == config_inputs(&c));
		assert_true(layer_ref_input(&c, &end[1]) == SIZE_MAX);
		for (int i = 0; i < ROLES; i++)
			assert_true(made[i] || (!a->bias[i] && !a->bias_key[i]));
		assert_true(made[ROLE_QKV] || (made[ROLE_Q] && made[ROLE_K] && made[ROLE_V]));
		assert_true(made[ROLE_OUTPUT] && made[ROLE_UP] == made[ROLE_DOWN]);
		assert_true(made[ROLE_UP] || made[ROLE_EXPERT_UP]);
		assert_int_equal(c.stack->experts > 0, made[ROLE_ROUTER] && made[ROLE_EXPERT_GATE] &&
			made[ROLE_EXPERT_UP] && made[ROLE_EXPERT_DOWN]);
		assert_int_equal(c.stack->shared > 0, made[ROLE_SHARED_GATE] && made[ROLE_SHARED_UP] &&
			made[ROLE_SHARED_DOWN] && made[ROLE_SHARED_SWITCH]);
		assert_int_equal(stack_width(c.stack, PROJECTION_GATE_UP),
			(made[ROLE_UP] + made[ROLE_GATE]) * c.stack->intermediate);
		config_free(&c);
		free(text);
	}
}

/* Every layer of a stack before the language model has the path of its members, below that of its block. */
static void check_stack(const struct config *c, const struct stack *s, size_t block)
{
	char *above = stack_block_path(s, block);

	for (const struct linear_row *l = s->arch->linear; l->name; l++) {
		char *wanted = xformat("%s/%s", above, l->name);
		struct layer_ref found;

		assert_true(layer_ref_find(c, wanted, &found));
		assert_true(found.stack == s && found.block == block && layer_ref_row(&found) == l);
		check_path(&found);
		free(wanted);
	}
	free(above);
}

/* Requirements of other files for every row of a vision-language model: no norm or head is read after the
 * blocks of an encoder, and a projector is one block without a number. */
static void encoders_are_whole(void **unused)
{
	(void)unused;
	for (const struct multimodal *m = multimodals; m->name; m++)
		for (const struct architecture *e = m->encoders; e->name; e++) {
			char *text = xformat("{\"model_type\": \"%s\", \"vision_feature_layer\": -2, "
				"\"vision_config\": {\"model_type\": \"%s\", \"patch_size\": 28}, "
				"\"text_config\": {\"vocab_size\": 200000}}", m->model_type,
				e->model_type);
			struct config c = config_parse("x", text);
			char *projector = stack_block_path(config_projector(&c), 0);

			CASE("%s", text);
			assert_ptr_equal(config_encoder(&c)->arch, e);
			assert_true(!e->final_norm && !e->head && !e->projector);
			assert_ptr_equal(config_projector(&c)->arch, &m->projector);
			assert_true(!m->projector.final_norm && !m->projector.head && m->projector.projector);
			assert_string_equal(projector, m->projector.blocks);
			check_stack(&c, config_projector(&c), 0);
			check_stack(&c, config_encoder(&c), config_encoder(&c)->blocks - 1);
			config_free(&c);
			free(projector), free(text);
		}
}

/* The rows of a checkpoint's tensor that belong to the layer, in its order, from stack_rows(). */
static void rows_of(const struct stack *s, const struct linear_row *row, size_t n, size_t at[n])
{
	struct row_slice p = stack_rows(s, row);

	assert_int_equal(p.groups * p.each, n);
	for (size_t i = 0; i < n; i++)
		at[i] = i / p.each * (p.rows / p.groups) + p.before + i % p.each;
}

/* Layers in one tensor in layouts that no row has: as in Phi-3, and interleaved with fewer key heads. */
static void fused_layers(void **unused)
{
	enum { D = 3, HEADS = 4, KV = 2, INNER = 5, Q = HEADS * D, ROW = D * (HEADS / KV + 2) };
	struct architecture a = { .linear = {
		{ "q", ROLE_Q, PROJECTION_QKV, ROWS_FUSED, "qkv" },
		{ "k", ROLE_K, PROJECTION_QKV, ROWS_FUSED, "qkv" },
		{ "v", ROLE_V, PROJECTION_QKV, ROWS_FUSED, "qkv" },
		{ "o", ROLE_OUTPUT, PROJECTION_OUTPUT, ROWS_AS_IS, NULL },
		{ "gate", ROLE_GATE, PROJECTION_GATE_UP, ROWS_FUSED, "gate_up" },
		{ "up", ROLE_UP, PROJECTION_GATE_UP, ROWS_FUSED, "gate_up" },
	} };
	const struct stack s = { .arch = &a, .hidden = Q, .heads = HEADS, .kv_heads = KV, .head_dim = D,
		.intermediate = INNER };
	size_t at[Q];

	(void)unused;
	rows_of(&s, &a.linear[0], Q, at);
	assert_true(at[0] == 0 && at[Q - 1] == Q - 1);
	rows_of(&s, &a.linear[1], KV * D, at);
	assert_true(at[0] == Q && at[KV * D - 1] == Q + KV * D - 1);
	rows_of(&s, &a.linear[2], KV * D, at);
	assert_true(at[0] == Q + KV * D && at[KV * D - 1] == Q + 2 * KV * D - 1);
	assert_int_equal(stack_rows(&s, &a.linear[0]).rows, Q + 2 * KV * D);
	rows_of(&s, &a.linear[3], Q, at);
	assert_true(at[0] == 0 && at[Q - 1] == Q - 1 && stack_rows(&s, &a.linear[3]).rows == Q);
	rows_of(&s, &a.linear[5], INNER, at);
	assert_true(at[0] == INNER && at[INNER - 1] == 2 * INNER - 1);

	for (int i = 0; i < 3; i++)
		a.linear[i].order = ROWS_INTERLEAVED;
	for (size_t i = 0; i < 3; i++) {
		CASE("linear[%zu]", i);
		size_t heads = i ? KV : HEADS, each = heads / KV, before = i ? HEADS / KV + i - 1 : 0;

		rows_of(&s, &a.linear[i], heads * D, at);
		for (size_t h = 0; h < heads; h++)
			for (size_t j = 0; j < D; j++)
				assert_int_equal(at[h * D + j], h / each * ROW + (before + h % each) * D + j);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(keys),
		cmocka_unit_test(defaults_of_classes),
		cmocka_unit_test(defaults_of_classes), cmocka_unit_test(defaults_of_gemma),
		cmocka_unit_test(experts), cmocka_unit_test(rows_are_whole),
		cmocka_unit_test(encoders_are_whole),
		cmocka_unit_test(fused_layers),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
