/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * multimodal.c -- the table of vision-language models; see multimodal.h
 *
 * A new class is a row here, and a row of tests/ref/vision.py that compares it with transformers.
 */
#include "model/multimodal.h"
#include <string.h>

#define TOWER_ROWS \
	.linear = { \
		{ "self_attn/q_proj", ROLE_Q, PROJECTION_QKV, ROWS_AS_IS, NULL }, \
		{ "self_attn/k_proj", ROLE_K, PROJECTION_QKV, ROWS_AS_IS, NULL }, \
		{ "self_attn/v_proj", ROLE_V, PROJECTION_QKV, ROWS_AS_IS, NULL }, \
		{ "self_attn/out_proj", ROLE_OUTPUT, PROJECTION_OUTPUT, ROWS_AS_IS, NULL }, \
		{ "mlp/fc1", ROLE_UP, PROJECTION_GATE_UP, ROWS_AS_IS, NULL }, \
		{ "mlp/fc2", ROLE_DOWN, PROJECTION_DOWN, ROWS_AS_IS, NULL }, \
	}
#define TOWER_KEYS \
	.keys = (const struct key_row []){ { "rms_norm_eps", "layer_norm_eps", ONE_NAME }, \
		{ "num_key_value_heads", NULL, ONE_NAME }, { "head_dim", NULL, ONE_NAME }, \
		{ NULL, NULL, ONE_NAME } }
#define TOWER_BIAS \
	{ [ROLE_Q] = true, [ROLE_K] = true, [ROLE_V] = true, [ROLE_OUTPUT] = true, [ROLE_UP] = true, \
		[ROLE_DOWN] = true }
/* Encoders of Qwen: bases of paths, positions by rows and columns, fused queries, keys and values. */
#define QWEN_TOWER \
	.layout = (const char *const []){ "/visual/patch_embed", "/visual/blocks/#", NULL }, \
	.embedding = "/visual/patch_embed/proj", .blocks = "/visual/blocks", \
	.norm = { [BEFORE_ATTENTION] = "norm1", [BEFORE_MLP] = "norm2" }, .bidirectional = true, .axes = 2
#define QWEN_ATTENTION_ROWS \
	{ "attn/q_proj", ROLE_Q, PROJECTION_QKV, ROWS_FUSED, "attn/qkv" }, \
	{ "attn/k_proj", ROLE_K, PROJECTION_QKV, ROWS_FUSED, "attn/qkv" }, \
	{ "attn/v_proj", ROLE_V, PROJECTION_QKV, ROWS_FUSED, "attn/qkv" }, \
	{ "attn/proj", ROLE_OUTPUT, PROJECTION_OUTPUT, ROWS_AS_IS, NULL }
#define QWEN_KEYS \
	{ "num_hidden_layers", "depth", ONE_NAME }, { "num_attention_heads", "num_heads", ONE_NAME }, \
	{ "num_channels", "in_channels", ONE_NAME }, { "rms_norm_eps", NULL, ONE_NAME }, \
	{ "num_key_value_heads", NULL, ONE_NAME }, { "head_dim", NULL, ONE_NAME }, { NULL, NULL, ONE_NAME }
/* Encoders like CLIP in transformers, with or without a class token. */
#define TOWER \
	.layout = (const char *const []){ "/vision_tower/embeddings", "/vision_tower/encoder/layers/#", \
		NULL }, \
	.embedding = "/vision_tower/embeddings/patch_embedding", \
	.position = "/vision_tower/embeddings/position_embedding", \
	.blocks = "/vision_tower/encoder/layers", .bidirectional = true, .norm_kind = NORM_LAYER, \
	.bias = TOWER_BIAS, TOWER_ROWS, TOWER_KEYS
#define TOWER_SIZES \
	.hidden = 768, .blocks = 12, .heads = 12, .intermediate = 3072, .image = 224

static const struct architecture towers[] = {
	{ .name = "CLIPVisionModel", .model_type = "clip_vision_model", TOWER,
	  .norm = { [BEFORE_ATTENTION] = "layer_norm1", [BEFORE_MLP] = "layer_norm2" },
	  .class_token = "/vision_tower/embeddings/class_embedding",
	  .embedding_norm = "/vision_tower/embeddings/pre_layrnorm",
	  .absent = { TOWER_SIZES, .patch = 32, .eps = 1e-5, .act = "quick_gelu" } },
	{ .name = "SiglipVisionModel", .model_type = "siglip_vision_model", TOWER, .embedding_bias = true,
	  .norm = { [BEFORE_ATTENTION] = "layer_norm1", [BEFORE_MLP] = "layer_norm2" },
	  .absent = { TOWER_SIZES, .patch = 16, .eps = 1e-6, .act = "gelu_pytorch_tanh" } },
	/* x + norm(branch(x)), as in Swin v2 and large InternViT; transformers has no such class. */
	{ .name = "PostNormVisionModel", .model_type = "postnorm_vision_model", TOWER,
	  .norm = { [AFTER_ATTENTION] = "layer_norm1", [AFTER_MLP] = "layer_norm2" },
	  .class_token = "/vision_tower/embeddings/class_embedding",
	  .absent = { TOWER_SIZES, .patch = 32, .eps = 1e-5, .act = "gelu" } },
	{ .name = NULL },
};

/* Encoders like SigLIP, whose norm after the blocks is a norm of the projector in the tree. */
#define IDEFICS3_TOWER \
	TOWER, .embedding_bias = true, \
	.norm = { [BEFORE_ATTENTION] = "layer_norm1", [BEFORE_MLP] = "layer_norm2" }, \
	.absent = { .hidden = 1152, .blocks = 12, .heads = 16, .intermediate = 3072, .image = 224, \
		.patch = 32, .eps = 1e-6, .act = "gelu_pytorch_tanh" }

static const struct architecture idefics3_towers[] = {
	{ .name = "Idefics3VisionTransformer", .model_type = "idefics3_vision", IDEFICS3_TOWER },
	{ .name = NULL },
};

static const struct architecture smolvlm_towers[] = {
	{ .name = "SmolVLMVisionTransformer", .model_type = "smolvlm_vision", IDEFICS3_TOWER },
	{ .name = NULL },
};

static const struct architecture qwen2_towers[] = {
	{ .name = "Qwen2VisionTransformerPretrainedModel", .model_type = "qwen2_vl_vision",
	  QWEN_TOWER, .norm_kind = NORM_LAYER, .bias = TOWER_BIAS,
	  .linear = { QWEN_ATTENTION_ROWS,
		{ "mlp/fc1", ROLE_UP, PROJECTION_GATE_UP, ROWS_AS_IS, NULL },
		{ "mlp/fc2", ROLE_DOWN, PROJECTION_DOWN, ROWS_AS_IS, NULL },
	  },
	  .keys = (const struct key_row []){ { "hidden_size", "embed_dim", ONE_NAME },
		{ "intermediate_size", NULL, ONE_NAME }, QWEN_KEYS },
	  .absent = { .hidden = 1280, .blocks = 32, .heads = 16, .patch = 14, .eps = 1e-6,
		.act = "quick_gelu" } },
	{ .name = NULL },
};

static const struct architecture qwen2_5_towers[] = {
	{ .name = "Qwen2_5_VisionTransformerPretrainedModel", .model_type = "qwen2_5_vl_vision",
	  QWEN_TOWER, .norm_kind = NORM_RMS, .sliding_kind = SLIDING_GRID,
	  .bias = { [ROLE_Q] = true, [ROLE_K] = true, [ROLE_V] = true, [ROLE_OUTPUT] = true,
		[ROLE_GATE] = true, [ROLE_UP] = true, [ROLE_DOWN] = true },
	  .linear = { QWEN_ATTENTION_ROWS,
		{ "mlp/gate_proj", ROLE_GATE, PROJECTION_GATE_UP, ROWS_AS_IS, NULL },
		{ "mlp/up_proj", ROLE_UP, PROJECTION_GATE_UP, ROWS_AS_IS, NULL },
		{ "mlp/down_proj", ROLE_DOWN, PROJECTION_DOWN, ROWS_AS_IS, NULL },
	  },
	  .keys = (const struct key_row []){ QWEN_KEYS },
	  .absent = { .hidden = 3584, .blocks = 32, .heads = 16, .intermediate = 3420, .patch = 14,
		.window = 112, .whole = (const int []){ 7, 15, 23, 31, -1 }, .eps = 1e-6, .act = "silu" } },
	{ .name = NULL },
};

#define LLAVA \
	.renames = (const struct rename_row []){ \
		{ "language_model.model.", "model." }, { "language_model.lm_head.", "lm_head." }, \
		{ "model.language_model.", "model." }, { "model.vision_tower.", "vision_tower." }, \
		{ "vision_tower.vision_model.", "vision_tower." }, \
		{ "vision_tower.pre_layrnorm.", "vision_tower.embeddings.pre_layrnorm." }, \
		{ "model.multi_modal_projector.", "multi_modal_projector." }, { NULL, NULL } }, \
	.written = (const struct rename_row []){	/* read by versions 4 and 5 of transformers */ \
		{ "model.", "language_model.model." }, { "lm_head.", "language_model.lm_head." }, \
		{ "vision_tower.embeddings.pre_layrnorm.", "vision_tower.vision_model.pre_layrnorm." }, \
		{ "vision_tower.", "vision_tower.vision_model." }, { NULL, NULL } }, \
	.unused = (const char *const []){ "vision_tower.post_layernorm.*", "vision_tower.head.*", NULL }, \
	.encoders = towers, .placeholder = 32000, .feature_key = "vision_feature_layer", .skips = true
#define LLAVA_PROJECTOR \
	.projector = true, .norm_kind = NORM_LAYER, .bias = { [ROLE_UP] = true, [ROLE_DOWN] = true }, \
	.bias_key = { [ROLE_UP] = "multimodal_projector_bias", [ROLE_DOWN] = "multimodal_projector_bias" }, \
	.layout = (const char *const []){ "/multi_modal_projector", NULL }, \
	.blocks = "/multi_modal_projector", \
	.linear = { { "linear_1", ROLE_UP, PROJECTION_GATE_UP, ROWS_AS_IS, NULL }, \
		{ "linear_2", ROLE_DOWN, PROJECTION_DOWN, ROWS_AS_IS, NULL } }

#define IDEFICS3(connector) \
	.text = "llama", .placeholder = 128257, .merge_key = "scale_factor", \
	.renames = (const struct rename_row []){ \
		{ "model.vision_model.post_layernorm.", "connector.post_layernorm." }, \
		{ "model.vision_model.", "vision_tower." }, { "model.connector.", "connector." }, \
		{ "model.text_model.", "model." }, { NULL, NULL } }, \
	.written = (const struct rename_row []){ \
		{ "connector.post_layernorm.", "model.vision_model.post_layernorm." }, \
		{ "vision_tower.", "model.vision_model." }, { "connector.", "model.connector." }, \
		{ "model.", "model.text_model." }, { NULL, NULL } }, \
	.unused = (const char *const []){ NULL }, \
	.projector = { .name = connector, .projector = true, .norm_kind = NORM_LAYER, \
		.layout = (const char *const []){ "/connector", NULL }, .blocks = "/connector", \
		.norm = { [BEFORE_MLP] = "post_layernorm" }, \
		.linear = { { "modality_projection/proj", ROLE_DOWN, PROJECTION_GATE_UP, ROWS_AS_IS, \
			NULL } } }

#define QWEN \
	.placeholder = 151655, .any_size = true, \
	.renames = (const struct rename_row []){ { "model.visual.", "visual." }, \
		{ "model.language_model.", "model." }, { NULL, NULL } }, \
	.written = (const struct rename_row []){ { NULL, NULL } }, \
	.unused = (const char *const []){ NULL }
#define QWEN_MERGER \
	.projector = true, .layout = (const char *const []){ "/visual/merger", NULL }, \
	.blocks = "/visual/merger", .norm = { [BEFORE_MLP] = "ln_q" }, \
	.bias = { [ROLE_UP] = true, [ROLE_DOWN] = true }, \
	.linear = { { "mlp/0", ROLE_UP, PROJECTION_GATE_UP, ROWS_AS_IS, NULL }, \
		{ "mlp/2", ROLE_DOWN, PROJECTION_DOWN, ROWS_AS_IS, NULL } }

const struct multimodal multimodals[] = {
	{ .name = "LlavaForConditionalGeneration", .model_type = "llava", .text = "llama", LLAVA,
	  .feature_layer = -2, .strategy_key = "vision_feature_select_strategy",
	  .projector = { .name = "LlavaMultiModalProjector", LLAVA_PROJECTOR } },
	{ .name = "VipLlavaForConditionalGeneration", .model_type = "vipllava", .text = "llama",
	  LLAVA, .projector_eps_key = "projector_layernorm_eps",
	  .projector = { .name = "VipLlavaMultiModalProjector", LLAVA_PROJECTOR,
		.norm = { [BEFORE_MLP] = "projector_layernorm" } } },
	{ .name = "Qwen2VLForConditionalGeneration", .model_type = "qwen2_vl", .text = "qwen2_vl_text",
	  .encoders = qwen2_towers, QWEN,
	  .projector = { .name = "PatchMerger", QWEN_MERGER, .norm_kind = NORM_LAYER } },
	{ .name = "Qwen2_5_VLForConditionalGeneration", .model_type = "qwen2_5_vl",
	  .text = "qwen2_5_vl_text", .encoders = qwen2_5_towers, QWEN,
	  .projector = { .name = "Qwen2_5_VLPatchMerger", QWEN_MERGER, .norm_kind = NORM_RMS } },
	{ .name = "Idefics3ForConditionalGeneration", .model_type = "idefics3", .encoders = idefics3_towers,
	  IDEFICS3("Idefics3Connector") },
	{ .name = "SmolVLMForConditionalGeneration", .model_type = "smolvlm", .encoders = smolvlm_towers,
	  IDEFICS3("SmolVLMConnector") },
	{ .name = NULL },
};

const struct multimodal *multimodal_find(const char *model_type, const char *name)
{
	for (const struct multimodal *m = multimodals; m->name; m++)
		if (model_type ? !strcmp(model_type, m->model_type) : name && !strcmp(name, m->name))
			return m;
	return NULL;
}
