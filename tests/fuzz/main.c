/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * main.c -- runs a fuzzer's input function without libFuzzer: NAME RUNS FILE...
 *
 * Runs each file unchanged, then RUNS inputs made from the files by changes with a fixed seed. The runs are
 * the same on every machine.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "survive.h"

enum { MAX = 1 << 20, CHANGES = 6 };

struct file { uint8_t *data; size_t n; };

static uint64_t state = 1;

static uint64_t draw(uint64_t below)
{
	state ^= state << 13, state ^= state >> 7, state ^= state << 17;
	return state % below;
}

static struct file load(const char *path)
{
	struct file f = { malloc(MAX), 0 };
	FILE *s = fopen(path, "rb");

	if (!s || !f.data) {
		perror(path);
		exit(1);
	}
	f.n = fread(f.data, 1, MAX, s);
	fclose(s);
	f.data = realloc(f.data, f.n + 1);
	return f;
}

static void change(struct file *f)
{
	static const uint64_t numbers[] = { 0, 1, 2, 0x7f, 0x80, 0xff, 0x7fff, 0xffff, 0x7fffffff, 0x80000000,
		0xffffffff, INT64_MAX, (uint64_t)INT64_MAX + 1, UINT64_MAX, UINT64_MAX - 7 };
	size_t at = f->n ? draw(f->n) : 0, n = 1 + draw(8), left = f->n - at, from;
	uint64_t v = numbers[draw(sizeof numbers / sizeof *numbers)];

	switch (draw(6)) {
	case 0:
		if (left)
			f->data[at] ^= (uint8_t)(1 << draw(8));
		break;
	case 1:
		if (left)
			f->data[at] = (uint8_t)draw(256);
		break;
	case 2:
		memcpy(f->data + at, &v, n < left ? n : left);
		break;
	case 3:		/* a span is removed */
		n = draw(left < 64 ? left + 1 : 64);
		memmove(f->data + at, f->data + at + n, left - n);
		f->n -= n;
		break;
	case 4:		/* a span is copied from elsewhere */
		from = f->n ? draw(f->n) : 0;
		n = draw(64);
		if (n > f->n - from)
			n = f->n - from;
		if (f->n + n > MAX)
			break;
		memmove(f->data + at + n, f->data + at, left);
		memmove(f->data + at, f->data + from, n);
		f->n += n;
		break;
	default:	/* the end is removed */
		if (!draw(8))
			f->n = at;
	}
}

/* At the end of its allocation: a sanitizer detects a read beyond it. */
static void run(const uint8_t *data, size_t n)
{
	uint8_t *p = malloc(n ? n : 1);

	if (!p)
		exit(1);
	memcpy(p, data, n);
	LLVMFuzzerTestOneInput(p, n);
	free(p);
}

int main(int argc, char *argv[])
{
	size_t files = argc > 2 ? (size_t)argc - 2 : 0, runs = files ? strtoul(argv[1], NULL, 10) : 0;
	struct file *file = malloc((files + 1) * sizeof *file), work = { malloc(MAX + 64), 0 };

	if (!files || !file || !work.data) {
		fprintf(stderr, "usage: %s RUNS FILE...\n", argv[0]);
		return 2;
	}
	survive_thorough = true;
	for (size_t i = 0; i < files; i++) {
		file[i] = load(argv[2 + i]);
		run(file[i].data, file[i].n);
	}
	survive_thorough = false;
	for (size_t i = 0; i < runs; i++) {
		const struct file *f = file + draw(files);

		work.n = f->n;
		memcpy(work.data, f->data, f->n);
		for (uint64_t k = 1 + draw(CHANGES); k; k--)
			change(&work);
		run(work.data, work.n);
	}
	printf("%zu files, %zu runs\n", files, runs);
	for (size_t i = 0; i < files; i++)
		free(file[i].data);
	free(file);
	free(work.data);
	return 0;
}
