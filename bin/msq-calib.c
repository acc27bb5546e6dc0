/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * msq-calib -- set how layers round their activations
 *
 *	act_scale = max|X|/max, or a percentile of |X| in place of max|X|; max: that of the format
 *
 * over calibration tokens (static-tensor) or over those of each modality (static-modality), or one scale
 * for each token at run time (dynamic-token). DPQ eq. 13; MQuant section 4.1 and table 1.
 */
#include "base/error.h"
#include "base/option.h"
#include "base/report.h"
#include "calib/input_scale.h"
#include "forward/cache.h"
#include "model/setting.h"
#include "num/linalg.h"
#include "transform/method.h"

static const struct tool tool = {
	.name = "msq-calib",
	.brief = "set how layers round their activations",
	.operands = "[MODEL]",
	.max_operands = 1,
	.about = "Stores in every linear layer the format to which its inputs are rounded, and a "
		"static scale from calibration tokens or a dynamic scale per token. Weights are "
		"unchanged. dpq-run without --compute keeps these scales. --kv-format stores the "
		"format of keys and values.",
	.examples = "  msq-calib --act-format int8 --tokens calib.h5 --ctx 256 --clip 99.99 \\\n"
		"    model.h5 -o a8.h5\n"
		"  dpq-run --storage int8 --group channel --compensate none a8.h5 -o w8a8.h5\n"
		"  msq-calib --act-format int4 --act-mode dynamic-token \\\n"
		"    --act-clip 0.9 model.h5 | eval-ppl --tokens test.h5",
};

static bool is_static_mode(const struct input_scales *s)
{
	return !s->kv_alone && (s->input.mode == INPUT_STATIC_TENSOR ||
		s->input.mode == INPUT_STATIC_MODALITY);
}

static void check_scales(const struct input_scales *s, const struct calibrate_text *text)
{
	const bool is_static = is_static_mode(s);

	option_without_effect(7, (struct option_without_effect[]){
		{ s->kv_alone, "tokens clip clip-modality act-clip layers " CALIBRATE_NAMES,
			"no --act-format" },
		{ s->input.mode != INPUT_STATIC_MODALITY, "clip-modality", "one scale for all modalities" },
		{ s->percentile >= 100, "clip-modality", "--clip is 100" },
		{ !is_static, "tokens clip " CALIBRATE_NAMES, "no static scale" },
		{ s->input.mode != INPUT_DYNAMIC_TOKEN, "act-clip", "no scale of each token" },
		{ s->input.mode == INPUT_AS_IS, "act-format", "--act-mode none" },
		STRIDE_WITHOUT_EFFECT(text->windows.convention) });
	if (s->input.mode == INPUT_AS_IS || s->kv_alone)
		return;
	if (!s->input.format.kind)
		misuse("--act-format FORMAT is expected");
	method_check_rounded(&s->input.format, "act-format");
	if (is_static && !text->tokens)
		misuse("--tokens FILE is expected for static scales; --act-mode dynamic-token needs none");
}

int main(int argc, char *argv[])
{
	struct report report = { 0 };
	struct calibrate_text text = { .shard = { .i = 1, .n = 1 } };
	struct selection layers;
	struct input_scales scales = { .layers = &layers, .kv = &text.kv };
	double clip;
	const struct option_row rows[] = {
		{ 0, "act-format", OPTION_FORMAT(&scales.input.format), "FORMAT", "format of activations" },
		{ 0, "act-mode", OPTION_CHOICE(&scales.input.mode, input_scale_modes), NULL,
			"kind of scales", .default_value = "static-tensor" },
		{ 0, "clip", OPTION_REAL(&scales.percentile), "PERCENTILE",
			"percentile of |x| to scale by",
			.default_value = "100", .min = 50, .max = 100 },
		{ 0, "clip-modality", OPTION_ENUM(enum clipped, &scales.clipped, input_scale_clipped), NULL,
			"modality that is clipped",
			.default_value = "all" },
		OPTION_ACT_CLIP(&clip),
		OPTION_KV_FORMAT(&text.kv),
		{ 't', "tokens", OPTION_FILE(&text.tokens), "FILE", "calibration tokens" },
		CALIBRATE_OPTIONS(&text),
		OPTION_LAYERS(&layers),
		OPTION_REPORT(&report),
		{ .type = OPTION_END },
	};
	struct command c = option_parse(argc, argv, &tool, rows);

	report_open(&report);
	scales.kv_alone = text.kv.given && !option_given("act-format") && !option_given("act-mode");
	check_scales(&scales, &text);
	if (scales.input.mode == INPUT_DYNAMIC_TOKEN && clip < 1)
		scales.input.clip = (float)clip;
	linalg_init();

	struct filter f = filter_open(c.operand[0], "model", c.output, "model");

	f.report = &report;
	filter_config(&f);
	if (is_static_mode(&scales)) {
		if (!f.config)
			die("%s: /config: is missing; static scales come from running the model",
				input_name(f.in));
		calibrate_check(f.config, &layers, input_name(f.in));
		scales.run = calibrate_open(&text, f.config, f.part);
	} else
		cache_check(&f, &text.kv);
	model_filter(&f, input_scales_part, &scales);
	if (!scales.done && !scales.kv_alone)
		die("%s: holds no linear layer with inputs%s", input_name(f.in), selection_text(&layers));
	if (scales.run)
		calibrate_close(scales.run);
	filter_close(&f);
	selection_free(&layers);
	return 0;
}
