/* SPDX-License-Identifier: GPL-3.0-or-later */
/* packed.c -- see packed.h */
#include "import/packed.h"
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/error.h"
#include "base/size.h"
#include "import/compressed_source.h"
#include "import/fp8_source.h"
#include "import/gptq_source.h"
#include "import/json_text.h"
#include "io/contents.h"
#include "num/half.h"

static const struct packed_kind *const kinds[] = { &compressed_source, &fp8_source, &gptq_source,
	&awq_gemm_source };
enum { KINDS = sizeof kinds / sizeof *kinds, WORD = 32, CONFIG_MAX = 16 << 20 };

/* --- quantization_config --- */

static const struct packed_kind *kind_of(const struct packed *p)
{
	const char *method = json_string_value(json_object_get(p->config, "quant_method"));
	char known[256] = "";

	for (size_t i = 0; i < KINDS; i++) {
		const size_t n = strlen(known);

		if (method && !strcmp(kinds[i]->method, method))
			return kinds[i];
		snprintf(known + n, sizeof known - n, "%s%s", i ? ", " : "", kinds[i]->method);
	}
	die("%s: %squant_method '%s' is not known, expected one of %s", p->config_name, p->key,
		method ? method : "", known);
}

/* The quantization_config, removed from the configuration of the model or its language model; NULL: none. */
static json_t *take_config(json_t *root)
{
	static const char *const keys[] = { "quantization_config", "compression_config" };
	json_t *const at[] = { root, json_object_get(root, "text_config") };

	for (size_t i = 0; i < sizeof at / sizeof *at; i++)
		for (size_t k = 0; k < sizeof keys / sizeof *keys; k++) {
			json_t *q = json_object_get(at[i], keys[k]);

			if (!json_object_size(q))
				continue;
			json_incref(q);
			json_object_del(at[i], keys[k]);
			return q;
		}
	return NULL;
}

/* The first tensor with codes of GPTQ or AWQ, or NULL. */
static const char *first_codes(const struct safetensors *tensors)
{
	for (size_t i = 0; i < safetensors_count(tensors); i++) {
		const char *name = safetensors_at(tensors, i), *member = strrchr(name, '.');

		if (member && !strcmp(member, ".qweight"))
			return name;
	}
	return NULL;
}

/* Reads quantize_config.json of AutoGPTQ: an object of the same keys; quant_method may be missing. */
static json_t *read_config(const char *name)
{
	json_t *y = json_pack("{s:s}", "quant_method", gptq_source.method), *q;
	json_error_t e;
	size_t n;
	char *text = contents_read(name, CONFIG_MAX, &n);

	q = json_loadb(text, n, JSON_REJECT_DUPLICATES, &e);
	free(text);
	if (!json_is_object(q))
		die("%s: line %d: %s", name, q ? 1 : e.line, q ? "expected an object" : e.text);
	json_object_update(y, q);
	json_decref(q);
	return y;
}

/* The configuration of a folder without quantization_config; NULL: the folder has no codes. */
static json_t *config_beside(const struct safetensors *tensors, const char *name)
{
	const char *codes = first_codes(tensors);

	if (codes && access(name, F_OK))
		die("%s: %s: config.json has no quantization_config, and %s does not exist",
			safetensors_file(tensors, codes), codes, name);
	return codes ? read_config(name) : NULL;
}

struct packed *packed_open(const char *config_name, char **config, struct safetensors *tensors)
{
	json_t *root = json_loads(*config, JSON_REJECT_DUPLICATES, NULL), *q = take_config(root);
	const bool inside = q;
	const int folder = (int)(strrchr(config_name, '/') - config_name);
	char *name = inside ? xformat("%s", config_name) :
		xformat("%.*s/quantize_config.json", folder, config_name);
	struct packed *p = NULL;

	if (!q)
		q = config_beside(tensors, name);
	if (q) {
		p = xalloc(1, sizeof *p);
		*p = (struct packed){ .tensors = tensors, .config_name = name, .config = q,
			.key = inside ? "'quantization_config': " : "" };
		p->kind = kind_of(p);
		free(*config);
		*config = json_text(root);
		p->kind->open(p);
	} else
		free(name);
	json_decref(root);
	return p;
}

void packed_close(struct packed *p)
{
	p->kind->close(p);
	json_decref(p->config);
	free(p->config_name);
	free(p);
}

/* Writes strings and numbers of an object and of objects in it. */
static void add_words(FILE *line, const char *prefix, json_t *o)
{
	const char *key;
	json_t *value;

	json_object_foreach(o, key, value) {
		char *name = xformat("%s%s", prefix, key), *text = NULL;

		if (json_is_object(value)) {
			char *inside = xformat("%s.", name);

			add_words(line, inside, value);
			free(inside);
		} else if (!json_is_array(value) && !json_is_null(value)) {
			text = json_is_string(value) ? xformat("%s", json_string_value(value)) :
				json_dumps(value, JSON_ENCODE_ANY);
			fprintf(line, " %s=%s", name, text);
		}
		free(name), free(text);
	}
}

char *packed_history(const struct packed *p)
{
	char *y;
	size_t n;
	FILE *line = open_memstream(&y, &n);

	if (!line)
		die("out of memory");
	fprintf(line, "quantization_config");
	add_words(line, "", p->config);
	if (fclose(line))
		die("out of memory");
	return y;
}

/* --- members --- */

static bool has(const struct packed *p, const char *name, const char *member)
{
	char *tensor = xformat("%s.%s", name, member);
	const bool is = safetensors_file(p->tensors, tensor);

	free(tensor);
	return is;
}

bool packed_has(const struct packed_layer *l, const char *member)
{
	return has(l->p, l->name, member);
}

/* rank -1: absent */
static struct safetensors_raw raw(const struct packed_layer *l, const char *member)
{
	char *tensor = xformat("%s.%s", l->name, member);
	const struct safetensors_raw t = packed_has(l, member) ? safetensors_raw(l->p->tensors, tensor) :
		(struct safetensors_raw){ .rank = -1 };

	free(tensor);
	return t;
}

bool packed_is(const struct packed_layer *l, const char *member, const char *dtype)
{
	const struct safetensors_raw t = raw(l, member);

	return t.rank >= 0 && !strcmp(t.dtype, dtype);
}

size_t packed_numbers(const struct packed_layer *l, const char *member)
{
	const struct safetensors_raw t = raw(l, member);
	size_t n = t.rank >= 0;

	for (int i = 0; i < t.rank; i++)
		n *= t.dim[i];
	return n;
}

char *packed_name(const struct packed *p, const char *tensor)
{
	const char *member = strrchr(tensor, '.');
	bool is = false, marked = false;
	char *name;

	for (const char *const *m = p->kind->members; member && *m && !is; m++)
		is = !strcmp(*m, member + 1);
	if (!is)
		return NULL;
	name = xformat("%.*s", (int)(member - tensor), tensor);
	for (const char *const *m = p->kind->marks; *m && !marked; m++)
		marked = has(p, name, *m);
	if (marked)
		return name;
	free(name);
	return NULL;
}

bool packed_is_ignored(const char *tensor)
{
	static const char *const names[] = { "k_scale", "v_scale", "q_scale", "kv_scale", "k_zero_point",
		"v_zero_point", "k_global_scale", "v_global_scale", "q_global_scale" };
	const char *name = strrchr(tensor, '.');

	for (size_t i = 0; name && i < sizeof names / sizeof *names; i++)
		if (!strcmp(name + 1, names[i]))
			return true;
	return false;
}

const char *packed_member(const struct packed *p, const char *name, size_t i)
{
	for (const char *const *m = p->kind->members; *m; m++)
		if (has(p, name, *m) && !i--)
			return *m;
	return NULL;
}

_Noreturn void packed_refuse(const struct packed_layer *l, const char *member, const char *fmt, ...)
{
	struct safetensors *tensors = l->p->tensors;
	char *tensor = xformat("%s.%s", l->name, member), *what = NULL;
	const char *file = safetensors_file(tensors, tensor), *other = packed_member(l->p, l->name, 0);
	va_list ap;

	va_start(ap, fmt);
	if (vasprintf(&what, fmt, ap) < 0)
		die("out of memory");
	va_end(ap);
	if (!file && other) {	/* the file of another member */
		char *neighbour = xformat("%s.%s", l->name, other);

		file = safetensors_file(tensors, neighbour);
		free(neighbour);
	}
	die("%s: %s: %s", file ? file : l->p->config_name, tensor, what);
}

static unsigned member_bit(const struct packed *p, const char *member)
{
	unsigned bit = 1;

	for (const char *const *m = p->kind->members; *m && strcmp(*m, member); m++)
		bit <<= 1;
	return bit;
}

/* "[4, 8]" */
static void name_extents(int rank, const size_t dim[], char text[128])
{
	size_t n = (size_t)snprintf(text, 128, "[");

	for (int i = 0; i < rank; i++)
		n += (size_t)snprintf(text + n, 128 - n, "%s%zu", i ? ", " : "", dim[i]);
	snprintf(text + n, 128 - n, "]");
}

static bool has_word(const char *words, const char *word)
{
	const size_t n = strlen(word);

	for (size_t length; *words; words += length + strspn(words + length, " ")) {
		length = strcspn(words, " ");
		if (length == n && !memcmp(words, word, n))
			return true;
	}
	return false;
}

void packed_skip(struct packed_layer *l, const char *member)
{
	l->taken |= member_bit(l->p, member);
}

static struct safetensors_raw member_data(struct packed_layer *l, const char *member, const char *dtypes)
{
	const struct safetensors_raw t = raw(l, member);

	if (t.rank < 0)
		packed_refuse(l, member, "is missing, %s needs it", l->name);
	if (!has_word(dtypes, t.dtype))
		packed_refuse(l, member, "is stored as %s, expected %s", t.dtype, dtypes);
	packed_skip(l, member);
	return t;
}

struct safetensors_raw packed_member_data(struct packed_layer *l, const char *member, const char *dtypes,
	int rank, const size_t dim[])
{
	const struct safetensors_raw t = member_data(l, member, dtypes);
	bool same = t.rank == rank;
	char is[128], expected[128];

	for (int i = 0; i < rank && same; i++)
		same = !dim[i] || t.dim[i] == dim[i];
	if (same)
		return t;
	name_extents(t.rank, t.dim, is);
	name_extents(rank, dim, expected);
	packed_refuse(l, member, "its shape is %s, expected %s", is, expected);
}

/* Numbers of a dtype as floats; *type: the scale type for the dtype. */
static float *widen(size_t n, const void *x, const char *dtype, enum scale_type *type)
{
	const bool exponents = !strcmp(dtype, "F8_E8M0");
	const enum half_type half = !strcmp(dtype, "F16") ? HALF_F16 : !strcmp(dtype, "BF16") ? HALF_BF16 :
		HALF_NONE;
	float *y = xalloc(n, sizeof *y);

	if (!exponents)
		half_widen(n, y, x, half);
	for (size_t i = 0; exponents && i < n; i++) {
		const uint8_t e = ((const uint8_t *)x)[i];

		y[i] = e == 255 ? NAN : ldexpf(1, e - 127);
	}
	*type = exponents ? SCALE_E8M0 : half == HALF_F16 ? SCALE_F16 :
		half == HALF_BF16 ? SCALE_BF16 : SCALE_F32;
	return y;
}

float *packed_floats(struct packed_layer *l, const char *member, int rank, const size_t dim[],
	enum scale_type *type)
{
	static const char dtypes[] = "F32 F16 BF16 F8_E8M0";
	const struct safetensors_raw t = rank < 0 ? member_data(l, member, dtypes) :
		packed_member_data(l, member, dtypes, rank, dim);
	enum scale_type any;
	size_t n = 1;

	for (int i = 0; i < t.rank; i++)
		n *= t.dim[i];
	if (rank < 0 && n != dim[0])
		packed_refuse(l, member, "has %zu numbers, expected %zu", n, dim[0]);
	return widen(n, t.data, t.dtype, type ? type : &any);
}

struct source_layer packed_scaled(struct packed_layer *l, const char *member, const size_t dim[2],
	struct format storage, long group, size_t rows)
{
	const size_t extents[] = { group < 0 ? 1 : ceil_div(dim[0], rows), linear_groups(dim[1], group) };
	enum scale_type type;
	float *scale = packed_floats(l, member, group < 0 ? -1 : 2, extents, &type);
	struct source_layer y;

	format_scales(&storage, type);
	y = source_layer_make(dim[0], dim[1], &storage, group);
	if (group < 0)
		*y.codes.scale = *scale;
	for (size_t row = 0; group >= 0 && row < dim[0]; row++)
		memcpy(y.codes.scale + row * extents[1], scale + row / rows * extents[1],
			extents[1] * sizeof *scale);
	free(scale);
	return y;
}

unsigned packed_field(const uint32_t word[], size_t stride, size_t at, int bits)
{
	const size_t shift = at % WORD;
	uint64_t two = word[at / WORD * stride];

	if (shift + (size_t)bits > WORD)
		two |= (uint64_t)word[(at / WORD + 1) * stride] << WORD;
	return (unsigned)(two >> shift) & ((1U << bits) - 1);
}

void packed_shape(const struct packed *p, const char *name, size_t dim[2])
{
	p->kind->shape(&(struct packed_layer){ p, name, 0 }, dim);
}

struct source_layer packed_read(const struct packed *p, const char *name)
{
	struct packed_layer l = { p, name, 0 };
	struct source_layer y;
	const char *member;
	char why[MEMBER_WHY];
	size_t dim[2];

	p->kind->shape(&l, dim);
	y = p->kind->read(&l, dim);
	for (size_t i = 0; (member = packed_member(p, name, i)); i++)
		if (!(l.taken & member_bit(p, member)))
			packed_refuse(&l, member, "is not expected in a layer of this quantization_config");
	if (!source_layer_is_valid(&y, &member, why))
		packed_refuse(&l, "weight", "its %s %s", member, why);
	return y;
}
