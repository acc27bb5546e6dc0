/* SPDX-License-Identifier: GPL-3.0-or-later */
/* image_jpeg.c -- see image_jpeg_private.h */
#include "vision/image_jpeg_private.h"
#include <jerror.h>
#include <jpeglib.h>

enum {
	JPEG_MAX = 512,	/* most pixels per byte: 8 x 8 pixels of the finest channel need at least a bit */
	SCANS = 128		/* most scans of a progressive file; each takes the time of a whole image */
};

static void jpeg_fails(j_common_ptr jpeg)
{
	struct image_reader *r = jpeg->client_data;
	char what[JMSG_LENGTH_MAX];

	jpeg->err->format_message(jpeg, what);
	snprintf(r->why, sizeof r->why, "is a damaged JPEG: %.150s", what);
	longjmp(r->back, 1);
}

/* Data that libjpeg replaces by gray are an error here; warnings that change no pixel are ignored. */
static void jpeg_warns(j_common_ptr jpeg, int level)
{
	const int code = jpeg->err->msg_code;

	if (level < 0 && code != JWRN_EXTRANEOUS_DATA && code != JWRN_JFIF_MAJOR && code != JWRN_ADOBE_XFORM)
		jpeg_fails(jpeg);
}

static void count_scans(j_common_ptr jpeg)
{
	struct image_reader *r = jpeg->client_data;

	if (((j_decompress_ptr)jpeg)->input_scan_number <= SCANS)
		return;
	snprintf(r->why, sizeof r->why, "is a JPEG of more than %d scans", SCANS);
	longjmp(r->back, 1);
}

/* Refuses an unsupported JPEG by longjmp(). */
static void check_header(const struct jpeg_decompress_struct *jpeg, struct image_reader *r)
{
	const char *why = image_refusal(jpeg->image_height, jpeg->image_width, r->n * JPEG_MAX);

	if (jpeg->arith_code)
		why = "is a JPEG with arithmetic coding, expected one of Huffman codes";
	if (jpeg->num_components != 1 && jpeg->num_components != 3)
		why = "is a JPEG of CMYK or the like, expected gray, or three channels";
	if (!why)
		return;
	snprintf(r->why, sizeof r->why, "%s", why);
	longjmp(r->back, 1);
}

static void read_rows(struct jpeg_decompress_struct *jpeg, struct image_reader *r)
{
	jpeg_mem_src(jpeg, r->bytes, r->n);
	jpeg_read_header(jpeg, TRUE);
	check_header(jpeg, r);
	if (!image_make(r, jpeg->image_height, jpeg->image_width))
		return;
	jpeg->out_color_space = JCS_RGB;
	jpeg_start_decompress(jpeg);
	while (jpeg->output_scanline < jpeg->output_height) {
		JSAMPROW row = r->y.rgb + jpeg->output_scanline * r->y.w * 3;

		jpeg_read_scanlines(jpeg, &row, 1);
	}
	jpeg_finish_decompress(jpeg);
}

bool image_jpeg(struct image_reader *r)
{
	struct jpeg_decompress_struct jpeg = { .client_data = r };
	struct jpeg_progress_mgr progress = { .progress_monitor = count_scans };
	struct jpeg_error_mgr errors;
	volatile bool good = false;

	jpeg.err = jpeg_std_error(&errors);
	errors.error_exit = jpeg_fails;
	errors.emit_message = jpeg_warns;
	if (!setjmp(r->back)) {
		jpeg_create_decompress(&jpeg);
		jpeg.progress = &progress;
		read_rows(&jpeg, r);
		good = true;
	}
	jpeg_destroy_decompress(&jpeg);
	return good;
}
