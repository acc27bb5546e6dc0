/* SPDX-License-Identifier: GPL-3.0-or-later */
/* hadamard.c -- choice and construction of Hadamard matrices; see hadamard.h */
#include "num/hadamard.h"
#include <stdio.h>
#include <string.h>
#include "base/size.h"

/* ---- finite fields: an element of GF(p^k) is a number; its digits to base p are the coefficients ---- */

enum { DIGITS = 8 };		/* 3^8 > HADAMARD_MAX */

/* The prime p if q is a power of p, else 0. */
static size_t prime_of(size_t q)
{
	size_t p = 2;

	if (q < 2)
		return 0;
	while (p * p <= q && q % p)
		p++;
	p = q % p ? q : p;
	while (q % p == 0)
		q /= p;
	return q == 1 ? p : 0;
}

static size_t digits_of(size_t p, size_t a, size_t digit[DIGITS])
{
	size_t k = 0;

	memset(digit, 0, DIGITS * sizeof *digit);
	for (; a; a /= p)
		digit[k++] = a % p;
	return k;
}

static size_t number_of(size_t p, const size_t digit[DIGITS])
{
	size_t a = 0;

	for (size_t i = DIGITS; i-- > 0; )
		a = a * p + digit[i];
	return a;
}

/* a² modulo x^k + f. */
static size_t square(size_t p, size_t k, size_t f, size_t a)
{
	size_t x[DIGITS], low[DIGITS], y[2 * DIGITS] = { 0 };

	digits_of(p, a, x);
	digits_of(p, f, low);
	for (size_t i = 0; i < k; i++)
		for (size_t j = 0; j < k; j++)
			y[i + j] = (y[i + j] + x[i] * x[j]) % p;
	for (size_t top = 2 * k; top-- > k; y[top] = 0)
		for (size_t i = 0; i < k; i++)
			y[top - k + i] = (y[top - k + i] + (p - y[top]) * low[i]) % p;
	return number_of(p, y);
}

static size_t difference(size_t p, size_t a, size_t b)
{
	size_t x[DIGITS], y[DIGITS];

	digits_of(p, a, x);
	digits_of(p, b, y);
	for (size_t i = 0; i < DIGITS; i++)
		x[i] = (x[i] + p - y[i]) % p;
	return number_of(p, x);
}

/*
 * The quadratic character of the field of q = p^k numbers, q odd: chi = 1 for squares, -1 for other numbers,
 * 0 for 0.
 *
 * The polynomials modulo x^k + f are a field, and x^k + f is irreducible, exactly if there are (q + 1)/2
 * squares. There are not more, since a and -a have the same square. If u v = 0 for some u, v ≠ 0, there are
 * fewer, since (u + v)/2 and (u - v)/2 also have the same square.
 */
static void characters(size_t q, int8_t chi[q])
{
	const size_t p = prime_of(q);
	size_t digit[DIGITS], k = digits_of(p, q, digit) - 1, squares = 0;

	for (size_t f = 0; squares < (q + 1) / 2; f++) {
		memset(chi, -1, q);
		squares = 0;
		for (size_t a = 0; a < q; a++) {
			int8_t *s = &chi[square(p, k, f, a)];

			squares += *s < 0;
			*s = 1;
		}
	}
	chi[0] = 0;
}

/* ---- constructions: `fits` returns q, or 0 if the order does not fit; `work` has order² / 2 bytes ---- */

struct construction {
	const char *name, *of;
	size_t (*fits)(size_t order);
	void (*build)(size_t order, size_t q, int8_t k[order][order], int8_t *work);
};

static size_t paley_1_fits(size_t order)
{
	return order % 4 == 0 && prime_of(order - 1) ? order - 1 : 0;
}

/* I + C, C = [0 1; -1 Q], Q = χ(a - b): antisymmetric. */
static void paley_1(size_t order, size_t q, int8_t k[order][order], int8_t *chi)
{
	const size_t p = prime_of(q);

	characters(q, chi);
	for (size_t i = 0; i < order; i++)
		for (size_t j = 0; j < order; j++)
			k[i][j] = i == j || !i ? 1 : !j ? -1 : chi[difference(p, i - 1, j - 1)];
}

static size_t paley_2_fits(size_t order)
{
	return order % 8 == 4 && prime_of(order / 2 - 1) ? order / 2 - 1 : 0;
}

/* C ⊗ [1 1; 1 -1] + I ⊗ [1 -1; -1 -1], C = [0 1; 1 Q], Q = χ(a - b): symmetric. */
static void paley_2(size_t order, size_t q, int8_t k[order][order], int8_t *chi)
{
	static const int8_t side[2][2] = { { 1, 1 }, { 1, -1 } }, middle[2][2] = { { 1, -1 }, { -1, -1 } };
	const size_t p = prime_of(q);

	characters(q, chi);
	for (size_t i = 0; i < order / 2; i++)
		for (size_t j = 0; j < order / 2; j++) {
			int c = !i || !j ? 1 : chi[difference(p, i - 1, j - 1)];

			for (size_t e = 0; e < 4; e++)
				k[2 * i + e / 2][2 * j + e % 2] = (int8_t)(i == j ? middle[e / 2][e % 2] :
					c * side[e / 2][e % 2]);
		}
}

/* First rows of the circulants. The rows for 23 and 29 were found by a search over rows. */
static const struct circulants { size_t m; const char *row[4]; } circulants[] = {
	{ 23, {
		"+---++-+-++++++-+-++---", "+--++-++++----++++-++--",
		"+-----+++--++--+++-----", "+++-+-+-++-++-++-+-+-++" } },
	{ 29, {
		"+--++----+-++++++++-+----++--", "+--+---+-+--++++++--+-+---+--",
		"++--++-+-++++----++++-+-++--+", "+-+++-+++--+-++++-+--+++-+++-" } },
	{ 39, {
		"+++--+-+-----+--++----++--+-----+-+--++", "++++---+--++----+-+--+-+----++--+---+++",
		"+++--++-+---+-+--+----+--+-+---+-++--++", "+---++-+-+-----+++-++-+++-----+-+-++---" } },
	{ 43, {
		"+---++--++++-+-+++-++--++-+++-+-++++--++---",
		"++-++++++----+-+--++-++-++--+-+----++++++-+",
		"+++-+-++--+-+-++++-+----+-++++-+-+--++-+-++",
		"++---++++-+--+--++--------++--+--+-++++---+" } },
};
enum { CIRCULANTS = sizeof circulants / sizeof *circulants };

static size_t williamson_fits(size_t order)
{
	for (size_t i = 0; i < CIRCULANTS; i++)
		if (order == 4 * circulants[i].m)
			return circulants[i].m;
	return 0;
}

/* [A B C D; -B A -D C; -C D A -B; -D -C B A] */
static void williamson(size_t order, size_t m, int8_t k[order][order], int8_t *work)
{
	static const int8_t sign[4][4] = { { 1, 1, 1, 1 }, { -1, 1, -1, 1 }, { -1, 1, 1, -1 },
		{ -1, -1, 1, 1 } };
	const struct circulants *c = circulants;

	(void)work;
	while (c->m != m)
		c++;
	for (size_t i = 0; i < order; i++)
		for (size_t j = 0; j < order; j++) {
			const char *row = c->row[i / m ^ j / m];

			k[i][j] = (int8_t)(sign[i / m][j / m] * (row[(j + m - i % m) % m] == '+' ? 1 : -1));
		}
}

static const struct construction constructions[] = {
	{ "Paley I", "q = ", paley_1_fits, paley_1 },
	{ "Paley II", "q = ", paley_2_fits, paley_2 },
	{ "Williamson", "", williamson_fits, williamson },
};
enum { CONSTRUCTIONS = sizeof constructions / sizeof *constructions };

/* ---- the choice ---- */

static size_t odd_part(size_t n)
{
	return n / (n & -n);
}

/* A single K of this order; false for a power of two, or if no construction fits. */
static bool one_factor(struct hadamard_factor *f, size_t order)
{
	if (order > HADAMARD_MAX || odd_part(order) == 1)
		return false;
	for (size_t i = 0; i < CONSTRUCTIONS; i++) {
		*f = (struct hadamard_factor){ .by = &constructions[i], .order = order,
			.q = constructions[i].fits(order) };
		if (f->q)
			return true;
	}
	return false;
}

/* Two K whose orders have this product: the closest orders, the larger one first. */
static bool two_factors(struct hadamard_factor f[2], size_t order)
{
	for (size_t a = 12; a <= HADAMARD_MAX; a += 4)
		if (a * a >= order && order % a == 0 && one_factor(&f[0], a) && one_factor(&f[1], order / a))
			return true;
	return false;
}

static bool choose_factors(struct hadamard *h, size_t order)
{
	const size_t odd = odd_part(order);

	*h = (struct hadamard){ .n = order, .block = order, .small = odd };
	for (size_t n = 1; n <= HADAMARD_FACTORS && odd > 1 && !h->factors; n++)
		for (size_t small = odd; small <= order && !h->factors; small *= 2)
			if ((n == 1 ? one_factor : two_factors)(h->factor, small)) {
				h->factors = n;
				h->small = small;
			}
	while (h->small << h->power < order)
		h->power++;
	return odd == 1 || h->factors;
}

size_t hadamard_block(size_t n)
{
	struct hadamard h;

	if (n % 4)
		return n % 2 ? 1 : 2;
	for (size_t blocks = 1; ; blocks++)
		if (n % blocks == 0 && choose_factors(&h, n / blocks))
			return n / blocks;
}

bool hadamard_choose(struct hadamard *h, size_t n, size_t block)
{
	if (!n || (block && n % block) || !choose_factors(h, block ? block : hadamard_block(n)))
		return false;
	h->n = n;
	return true;
}

void hadamard_text(const struct hadamard *h, size_t size, char text[size])
{
	size_t at = 0;

	for (size_t i = 0; i < h->factors && at < size; i++)
		at += (size_t)snprintf(text + at, size - at, "%s%s (%s%zu)", i ? " ⊗ " : "",
			h->factor[i].by->name, h->factor[i].by->of, h->factor[i].q);
	if (at < size && (h->power || !at))
		snprintf(text + at, size - at, "%sSylvester (%zu)", at ? " ⊗ " : "", (size_t)1 << h->power);
}

/* ---- building ---- */

size_t hadamard_bytes(const struct hadamard *h)
{
	size_t bytes = 0;

	for (size_t i = 0; i < h->factors; i++)
		bytes += h->factor[i].order * h->factor[i].order / 2 * 3;
	return bytes;
}

/* Signs of four neighbours in a column or row, times HADAMARD_COLUMNS; bit t is set if neighbour t is -1. */
static void patterns(bool rows, size_t order, uint8_t pattern[order][order / 4], const int8_t k[order][order])
{
	for (size_t b = 0; b < order; b++)
		for (size_t g = 0; g < order / 4; g++) {
			unsigned bits = 0;

			for (size_t t = 0; t < 4; t++)
				bits |= (unsigned)((rows ? k[b][4 * g + t] : k[4 * g + t][b]) < 0) << t;
			pattern[b][g] = (uint8_t)(bits * HADAMARD_COLUMNS);
		}
}

void hadamard_build(struct hadamard *h, void *memory)
{
	for (size_t i = 0; i < h->factors; i++) {
		struct hadamard_factor *f = &h->factor[i];
		const size_t n = f->order;
		int8_t *k = memory;
		uint8_t *first = memory, *second;

		first += n * n;
		second = first + n * n / 4;
		f->by->build(n, f->q, (int8_t (*)[n])k, (int8_t *)first);
		patterns(false, n, (uint8_t (*)[n / 4])first, (const int8_t (*)[n])k);
		patterns(true, n, (uint8_t (*)[n / 4])second, (const int8_t (*)[n])k);
		f->k = k, f->pattern[0] = first, f->pattern[1] = second;
		memory = second + n * n / 4;
	}
}
