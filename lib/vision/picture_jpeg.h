/* SPDX-License-Identifier: GPL-3.0-or-later */
/* picture_jpeg.h -- JPEG files, by libjpeg; see picture_kind.h */
#ifndef VISION_PICTURE_JPEG_H
#define VISION_PICTURE_JPEG_H
#include <stdio.h>	/* jpeglib.h wants it before itself */
#include "vision/picture_kind.h"

bool picture_jpeg(struct picture_reader *r);
#endif
