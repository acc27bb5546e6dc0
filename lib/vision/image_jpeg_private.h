/* SPDX-License-Identifier: GPL-3.0-or-later */
/* image_jpeg_private.h -- JPEG files, by libjpeg; see image_private.h */
#ifndef VISION_IMAGE_JPEG_PRIVATE_H
#define VISION_IMAGE_JPEG_PRIVATE_H
#include <stdio.h>	/* jpeglib.h needs it before */
#include "vision/image_private.h"

bool image_jpeg(struct image_reader *r);
#endif
