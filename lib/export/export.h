/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * export.h -- a model as files that other programs load: the way of import.h backwards
 *
 *	struct filter f = filter_open(path, "model", NULL, NULL);
 *
 *	export_model(&f, target_at(i), "folder", &options);
 *	filter_close(&f);
 *
 * Each tensor of a checkpoint of the model's class is put together from the layers that it holds, part by
 * part; one part of the model is in memory. Refused by name: what a checkpoint of the class cannot hold,
 * such as a norm of another kind, a bias, inputs, keys or values that are rounded (but with weights_only);
 * and at the end, what the class has and the model has not.
 */
#ifndef EXPORT_EXPORT_H
#define EXPORT_EXPORT_H
#include "export/target.h"
#include "model/filter.h"

/* Writes the result at the path `to`, whole or not at all. */
void export_model(struct filter *f, const struct target *target, const char *to,
	const struct export_options *options);
#endif
