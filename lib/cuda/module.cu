/* SPDX-License-Identifier: GPL-3.0-or-later */
/* module.cu -- the entry point of the module; see device/device.h */
#include <string.h>
#include "cuda/library.h"
#include "cuda/module.h"

static struct device gpu_device;

const struct device *ptq_device(const struct device_host *host)
{
	struct device *d = &gpu_device;

	if (strcmp(host->version, PTQ_VERSION))
		host->fail("%s: is a module of version %s, this is version %s; build the module again",
			host->file, PTQ_VERSION, host->version);
	if (d->name)		/* it is open */
		return d;
	d->name = library_open(host);
	if (!d->name)
		return NULL;
	d->allocate = library_allocate;
	d->release = library_release;
	d->clear = library_clear;
	d->upload = library_upload;
	d->download = library_download;
	d->pin = library_pin;
	d->unpin = library_unpin;
	d->norm = gpu_norm;
	d->add = gpu_add;
	d->add_bias = gpu_add_bias;
	d->multiply_signs = gpu_multiply_signs;
	d->activate = gpu_activate;
	d->rope = gpu_rope;
	d->attention = gpu_attention;
	d->round = gpu_round;
	d->quantize = gpu_quantize;
	d->rotate = gpu_rotate;
	d->convert = gpu_convert;
	d->product = gpu_product;
	d->packed = gpu_packed;
	d->bytes = gpu_bytes;
	d->moments = gpu_moments;
	d->symmetric = gpu_symmetric;
	d->transpose = gpu_transpose;
	d->transpose_codes = gpu_transpose_codes;
	d->ranges = gpu_ranges;
	d->factor = gpu_factor;
	d->inverse = gpu_inverse;
	d->fit = gpu_fit;
	d->span = gpu_span;
	d->block = gpu_block;
	d->dead = gpu_dead;
	d->quadratic = gpu_quadratic;
	d->copy = gpu_copy;
	d->start = gpu_start;
	d->stop = gpu_stop;
	return d;
}
