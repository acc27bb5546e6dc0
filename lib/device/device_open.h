/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * device_open.h -- the option --device, and memory of a device or of the processor
 *
 * A device NAME is the module NAME.so in the folder lib/ptqtools next to that of the tools, or in build; a
 * name with a slash is a file. "cpu" is no device.
 */
#ifndef DEVICE_DEVICE_OPEN_H
#define DEVICE_DEVICE_OPEN_H
#include "base/option.h"
#include "device/device.h"

#define OPTION_DEVICE(var) { 0, "device", OPTION_TEXT(var), "cpu|cuda|FILE", \
	"where the model runs (default: $PTQ_DEVICE, cpu)", .environment = "PTQ_DEVICE" }

/* The device of an option. NULL: the processor, as for NULL, "" and "cpu". A module that is missing or does
 * not fit, or a device that is missing, is a fatal error. */
const struct device *device_open(const char *name);

/* Memory of the device, or of the processor if d is NULL. */
void *device_memory(const struct device *d, size_t n, size_t size);
void device_free(const struct device *d, void *memory);
/* A copy of host memory on the device; x NULL: NULL. */
void *device_copy(const struct device *d, const void *x, size_t bytes);
#endif
