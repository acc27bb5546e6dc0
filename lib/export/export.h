/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * export.h -- a model as files that other programs load: the inverse of import.h
 *
 *	struct filter f = filter_open(path, "model", NULL, NULL);
 *
 *	export_model(&f, target_at(i), "folder", &options);
 *	filter_close(&f);
 *
 * Each tensor of a checkpoint of the model's class is built from its layers. The model is read part by part;
 * one part is in memory.
 *
 * Errors are fatal and name the member. They are: members that a checkpoint of the class cannot store, such
 * as a norm of another kind or a bias; rounding of inputs, keys or values (unless weights_only is set); and,
 * at the end, members of the class that the model does not have.
 */
#ifndef EXPORT_EXPORT_H
#define EXPORT_EXPORT_H
#include "export/target.h"
#include "model/filter.h"

/* Writes the result at the path `to`, completely or not at all. */
void export_model(struct filter *f, const struct target *target, const char *to,
	const struct export_options *options);
#endif
