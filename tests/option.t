#!/bin/sh
# option.t -- a row of options compiles with a variable of the right type, and with no other
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/tap.sh"

cat > row.c <<'END'
#include "forward/hidden.h"
#include "forward/windows.h"
#include "model/config.h"
#include "model/setting.h"
#include "product/product.h"

static const char *const words[] = { "a", "b", NULL };
enum letter { A, B };
void use(const struct option_row *row);
void f(bool *b, int *i, unsigned char *c, uint32_t *u, size_t *z, float *s, double *d, const char **t, char **e,
	enum letter *l, struct selection *p, struct format *g, long *n, enum compute_type *k,
	enum windows_convention *w);
void f(bool *b, int *i, unsigned char *c, uint32_t *u, size_t *z, float *s, double *d, const char **t, char **e,
	enum letter *l, struct selection *p, struct format *g, long *n, enum compute_type *k,
	enum windows_convention *w)
{
	(void)b, (void)i, (void)c, (void)u, (void)z, (void)s, (void)d, (void)t, (void)e, (void)l, (void)p;
	(void)g, (void)n, (void)k, (void)w, (void)words;
	use((const struct option_row[]){ ROW });
}
END
compiles() { ${CC:-gcc} -std=c17 -D_GNU_SOURCE -Wall -Wextra -Werror -fsyntax-only -I"$top/lib" "-DROW=$1" row.c; }
refused() {
	! ${CC:-gcc} -std=c17 -D_GNU_SOURCE -w -fsyntax-only -I"$top/lib" "-DROW=$1" row.c 2>err &&
		grep -q "_Generic" err
}
# kind NAME MORE RIGHT WRONG...: variables; MORE follows the variable in the parentheses
kind() {
	name=$1 more=$2 right=$3; shift 3
	ok "$name($right) compiles" compiles "{ 0, \"x\", $name($right$more), \"X\", \"help\" }"
	for v; do ok "$name($v) does not" refused "{ 0, \"x\", $name($v$more), \"X\", \"help\" }"; done
}
kind OPTION_BOOL '' b i c
kind OPTION_EITHER ', words' b i l
kind OPTION_SIZE '' z i u d n
kind OPTION_REAL '' d s z
kind OPTION_TEXT '' t e p
kind OPTION_FILE '' t e z
kind OPTION_CHOICE ', words' l i b z
kind OPTION_SELECTION '' p t
kind OPTION_FORMAT '' g t
kind OPTION_FORMAT_OR_NONE '' g t
for row in 'OPTION_CTX z i' 'OPTION_LIMIT z u' 'OPTION_MEMORY z i' 'OPTION_SEED z d' 'OPTION_FORCE_TOKENS b i' \
	'OPTION_LAYERS p t' \
	'OPTION_GROUP n z' 'OPTION_TIES b i' 'OPTION_COMPUTE_TYPE k w' 'OPTION_CONVENTION w k'; do
	# shellcheck disable=SC2086
	set -- $row
	ok "$1($2) compiles" compiles "$1($2)"
	ok "$1($3) does not" refused "$1($3)"
done
done_testing
