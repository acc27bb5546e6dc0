/* SPDX-License-Identifier: GPL-3.0-or-later */
/* image_jpeg.h -- JPEG files, by libjpeg; see image_kind.h */
#ifndef VISION_IMAGE_JPEG_H
#define VISION_IMAGE_JPEG_H
#include <stdio.h>	/* jpeglib.h wants it before itself */
#include "vision/image_kind.h"

bool image_jpeg(struct image_reader *r);
#endif
