/* SPDX-License-Identifier: GPL-3.0-or-later */
/* export_config.c -- see export_config.h */
#include "export/export_config.h"
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "import/json_text.h"

/* Sets the dtype, also in nested configurations that have one. */
static void set_dtype(json_t *o, const char *dtype, bool inside)
{
	static const char *const keys[] = { "dtype", "torch_dtype" };	/* torch_dtype: before version 5 */
	const char *name;
	json_t *value;

	for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
		if (!inside || json_object_get(o, keys[i]))
			json_object_set_new(o, keys[i], json_string(dtype));
	json_object_foreach(o, name, value)
		if (json_is_object(value) && strstr(name, "_config"))
			set_dtype(value, dtype, true);
}

static void set_class(const struct export *e, json_t *o)
{
	const struct multimodal *m = e->config->vision.class;

	json_object_set_new(o, "architectures", json_pack("[s]", config_class(e->config)));
	if (!json_object_get(o, "model_type"))
		json_object_set_new(o, "model_type",
			json_string(m ? m->model_type : e->config->arch->model_type));
}

/* The depth of the encoder: in the tree its last block is the one whose features are used. */
static void set_depth(const struct config *c, json_t *o)
{
	const struct multimodal *m = c->vision.class;
	json_t *vision = m ? json_object_get(o, "vision_config") : NULL;

	if (!vision || !m->feature_key)
		return;
	json_object_set_new(vision, "num_hidden_layers", json_integer((json_int_t)config_encoder(c)->blocks));
	json_object_set_new(o, m->feature_key, json_integer(-1));
}

char *export_config(const struct export *e, json_t *quantization)
{
	static const char *const dtypes[] = { [HALF_NONE] = "float32", [HALF_F16] = "float16",
		[HALF_BF16] = "bfloat16" };
	json_t *o = json_loads(e->text[TEXT_CONFIG], 0, NULL), *text = json_object_get(o, "text_config");
	char *y;

	set_class(e, o);
	set_depth(e->config, o);
	set_dtype(o, dtypes[e->options.dtype], false);
	if (e->tied != e->config->tied || json_object_get(o, "tie_word_embeddings"))
		json_object_set_new(o, "tie_word_embeddings", json_boolean(e->tied));
	if (text && (e->tied != e->config->tied || json_object_get(text, "tie_word_embeddings")))
		json_object_set_new(text, "tie_word_embeddings", json_boolean(e->tied));
	json_object_del(o, "quantization_config");
	if (quantization)
		json_object_set_new(o, "quantization_config", quantization);
	y = json_text(o);
	json_decref(o);
	return y;
}
