/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * device_open.h -- the option --device, and memory of a device or of the processor
 *
 * --device NAME loads the module NAME.so of the folder ../lib/ptqtools or ../build, relative to the folder of
 * the tool. A name with a slash is the path of a module. "cpu" is the processor.
 */
#ifndef DEVICE_DEVICE_OPEN_H
#define DEVICE_DEVICE_OPEN_H
#include "base/option.h"
#include "device/device.h"

#define OPTION_DEVICE(var) { 0, "device", OPTION_TEXT(var), "cpu|cuda|FILE", \
	"where the model runs (default: $PTQ_DEVICE, cpu)", .environment = "PTQ_DEVICE" }

/* The device of this name. NULL and "cpu": NULL, the processor. An empty name, a missing device, and a
 * missing module or one of another version, is a fatal error. */
const struct device *device_open(const char *name);

/* Memory of n numbers of this size on the device, or of the processor if d is NULL. */
void *device_memory(const struct device *d, size_t n, size_t size);
void device_free(const struct device *d, void *memory);
/* A copy of host memory in such memory; x NULL: NULL. */
void *device_copy(const struct device *d, const void *x, size_t bytes);
#endif
