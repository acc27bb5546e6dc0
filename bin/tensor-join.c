/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * tensor-join -- join the blocks that separate jobs quantized
 *
 * Inputs are shards of dpq-run --shard, each with some of the blocks, or whole models, each with some
 * layers quantized (dpq-run --layers).
 */
#include <stdint.h>
#include <stdlib.h>
#include "base/error.h"
#include "base/option.h"
#include "model/basis.h"
#include "model/shard_set.h"
#include "transform/join.h"

static const struct tool tool = {
	.name = "tensor-join",
	.brief = "join the blocks that separate jobs quantized",
	.operands = "MODEL...",
	.max_operands = SIZE_MAX,
	.about = "Takes the quantized form of each linear layer, from shards (dpq-run --shard) or "
		"from whole models in which different layers are quantized (dpq-run --layers). "
		"Everything else must be equal in all inputs that contain it. Inputs are files or "
		"streams.",
	.examples = "  dpq-run -q --compensate none --shard 1/2 model.h5 -o half-1.h5\n"
		"  dpq-run -q --compensate none --shard 2/2 model.h5 -o half-2.h5\n"
		"  tensor-join half-1.h5 half-2.h5 -o joined.h5",
};

int main(int argc, char *argv[])
{
	bool force;
	const struct option_row rows[] = { OPTION_FORCE_BASIS(&force), { .type = OPTION_END } };
	struct command c = option_parse(argc, argv, &tool, rows);
	struct filter *file = xalloc(c.operands, sizeof *file);
	struct join join = { .n = c.operands, .file = file };

	for (size_t i = 0; i < c.operands; i++)
		file[i] = filter_open(c.operand[i], "model", NULL, NULL);
	join.shards = shard_sort(c.operands, file);
	option_without_effect(1, &(struct option_without_effect)BASIS_WITHOUT_EFFECT(
		shard_match(c.operands, file, force)));
	filter_config(file);
	file->out = output_open(c.output, "model");
	model_filter(file, join_part, &join);
	join_end(&join);
	for (size_t i = 0; i < c.operands; i++)
		filter_close(&file[i]);
	free(file);
	return 0;
}
