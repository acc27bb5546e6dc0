/* SPDX-License-Identifier: GPL-3.0-or-later */
/* device_codes.h -- number formats for a device: how it decodes codes, and how it rounds */
#ifndef DEVICE_DEVICE_CODES_H
#define DEVICE_DEVICE_CODES_H
#include "device/device.h"
#include "num/format.h"

/* Whether products of a device accept packed codes of a format, in groups of `group` columns (0: a row). */
bool device_codes_fit(const struct format *f, size_t group);
/* Sets bits, code, offset, mantissa, bias and table of *p. The table is for device_free(). */
void device_codes(const struct device *d, const struct format *f, struct device_packed *p);
/* How a device rounds to a format with a list of values (format_has_grid()), without a zero point. */
struct device_format device_format(const struct format *f);
#endif
