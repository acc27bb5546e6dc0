#!/bin/sh
# make.t -- the Makefile: make install and make uninstall, missing packages, single tests, flags
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/tap.sh"
unset MAKEFLAGS MAKELEVEL MFLAGS BUILD CC CFLAGS COVERAGE DESTDIR PREFIX SAN T V	# of the make that runs this

# A tree of links to the checkout, with the tools under test: nothing in it is built.
tools=$(cd "$top" && ls bin/*.c | sed 's/[.]c$//')
mkdir tree tree/bin
ln -s "$top/Makefile" "$top/VERSION" "$top/docs" "$top/pipelines" "$top/data" "$top/lib" "$top/tests" tree
for t in $tools; do ln -s "$top/$t.c" "$(command -v "${t#bin/}")" tree/bin; done
everything() { find tree | sort; }
everything >before

# --- make install ---
# installed NAME FOLDER: everything is installed unchanged, and works
installed() {
	name=$1 into=$2
	is "$name: every tool" "$(cd "$into/bin" && ls | sed 's,^,bin/,')" "$tools"
	is '... which runs' "$("$into/bin/eval-ppl" --version)" "$(eval-ppl --version)"
	ok '... every man page' diff -r -x options -x ptqtools.7 "$top/docs/man" "$into/share/man/man1"
	ok '... ptqtools(7)' cmp "$top/docs/man/ptqtools.7" "$into/share/man/man7/ptqtools.7"
	is '... completion of a command' "$(bash -c '. "$1" && complete -p exmy-sweep' bash \
		"$into/share/bash-completion/completions/exmy-sweep")" 'complete -F _ptqtools exmy-sweep'
	ok '... every pipeline' diff -r "$top/pipelines" "$into/share/ptqtools/pipelines"
	ok '... and their data' test -f "$into/share/ptqtools/data/prose/config.json" \
		-a -f "$into/share/ptqtools/data/vlm/questions.jsonl"
	ok '... a pipeline runs from there' env PTQ_RESULTS="$tmp/results of $name" PATH="$into/bin:$PATH" \
		"$into/share/ptqtools/pipelines/dpq-figure4.sh"
	ok '... the reader for Python' /usr/bin/python3 "$into/share/ptqtools/ptqtools.py" "$top/tests/ref/llama-gqa.h5"
	ok '... and its compiled form' /usr/bin/python3 -m compileall -q "$into/share/ptqtools"
	is '... and no new file is in the tree' "$(everything | diff before -)" ''
}
ok 'make install, a prefix with a blank' make -C tree -o all install PREFIX="$tmp/in st"
installed 'prefix' "$tmp/in st"
ok 'make install, DESTDIR with special characters of the shell' \
	make -C tree -o all install DESTDIR="$tmp/it's a; \"stage\" *" PREFIX=/usr
installed 'DESTDIR' "$tmp/it's a; \"stage\" */usr"
ok 'make install, PREFIX from the environment' env PREFIX="$tmp/from env" make -C tree -o all install
ok '... the same files' diff -r -x __pycache__ "$tmp/in st" "$tmp/from env"

# --- make uninstall ---
# left FOLDER: the files in it, and share/ptqtools if it exists
left() { (cd "$1" && find . -type f -o -type d -path './share/ptqtools*') | sort | xargs; }
touch "$tmp/in st/bin/other" "$tmp/in st/share/man/man1/other.1" "$tmp/in st/share/ptqtools/pipelines/mine.sh"
ok 'make uninstall, a prefix with a blank' make -C tree uninstall PREFIX="$tmp/in st"
is '... only files of others are left' "$(left "$tmp/in st")" \
	"$(echo ./bin/other ./share/man/man1/other.1 ./share/ptqtools ./share/ptqtools/pipelines \
		./share/ptqtools/pipelines/mine.sh)"
ok 'make uninstall, DESTDIR' make -C tree uninstall DESTDIR="$tmp/it's a; \"stage\" *" PREFIX=/usr
is '... nothing is left' "$(left "$tmp/it's a; \"stage\" */usr")" ''
ok '... a second time' make -C tree uninstall DESTDIR="$tmp/it's a; \"stage\" *" PREFIX=/usr
is 'the checkout is as it was' "$(everything | diff before -)" ''

# --- missing packages ---
unset READY	# of the make that runs this test
mkdir system
for f in sh id grep echo test; do ln -s "$(command -v $f)" system; done
printf '#!/bin/sh\ncase $4 in have) echo "install ok installed" ;; *) exit 1 ;; esac\n' >system/dpkg-query
printf '#!/bin/sh\necho "$@" >>"%s/installed"\n' "$tmp" >system/apt-get
chmod +x system/*-*
missing() { PATH="$tmp/system" "$top/tests/packages" "$@"; }
no 'make: a missing library: the message has the command that installs it' 1 \
	'packages are missing; as root: apt-get install lack other$' \
	missing have lack other
is '... and nothing is installed' "$(cat installed 2>&1)" 'cat: installed: No such file or directory'
ok 'make deps installs it' missing --install have lack
is '... with apt-get' "$(cat installed)" 'install -y --no-install-recommends lack'
ok 'no package is missing' missing have
rm system/apt-get
missing have lack >without.out 2>&1
is 'a system without apt' "$? $(head -n 1 without.out)" \
	'1 this system has no apt-get; please install what Debian calls:'
READY=yes missing have lack >without.out 2>&1
is '... that has all libraries of the tools' "$? $(cat without.out)" \
	'0 this system has no apt-get: packages are not checked'

# --- single tests: what make would run ---
# runs VARIABLE=VALUE...: the tests that make check would give to prove
runs() {
	make -C tree -n BUILD=build/none check "$@" |
		awk '/ prove / { on = 1 } on { for (i = 1; i <= NF; i++) if ($i ~ /^(tests|build)\//) print $i }' |
			xargs
}
is 'a script, and no C test' "$(runs T=dpq-run)" tests/dpq-run.t
is 'a C test, and no script' "$(runs T=half)" build/none/tests/half
is 'a script and a C test of one name' "$(runs T=hadamard)" 'tests/hadamard.t build/none/tests/hadamard'
is 'several tests, and one that runs a second time' "$(runs T='shards product-avx512 fault')" \
	'tests/shards.t build/none/tests/product-avx512 build/none/tests/fault/fault'
is '... a run of one test builds only that' \
	"$(make -C tree -n BUILD=build/none V=1 check T=half | grep -c -e ' -o build/none/tests/')" 2
is 'the programs that a script runs are built' \
	"$(make -C tree -n BUILD=build/none V=1 check T=fuzz | grep -c -e ' -o build/none/fuzz/')" 6
is 'all tests: tests/*.t, tests/*.c except vq8.c, a part of vq8.t, and four more' "$(runs | wc -w)" \
	"$(cd "$top" && printf '%s\n' tests/*.t tests/*.c | grep -vc '^tests/vq8\.c$' | awk '{ print $1 + 4 }')"
no 'an unknown name: the message has similar names' 2 \
	"no test is called hadamar; there are hadamard hadamard-rotate\\. " \
	make -s -C tree check T=hadamar
no '... or all names, also next to a known name' 2 'no test is called zzz; there are abuse activation .* windows\. ' \
	make -s -C tree check T='half zzz'
no 'an empty name' 2 'T= names no test; there are abuse ' make -s -C tree check T=

# --- flags and dependencies: what make would run ---
# would OBJECT VARIABLE=VALUE...: the command that makes it
would() { object=$1; shift; make -C tree -n V=1 CFLAGS=-Werror "$@" "$object" | grep -e " -c -o $object "; }
# has NAME FLAG COMMAND
has() { ok "$1" sh -c 'case "$2" in *" $1 "*) ;; *) echo "no $1 in: $2"; exit 1 ;; esac' sh "$2" "$3"; }
has 'CFLAGS of the command line are used' -Werror "$(would build/none/lib/base/cpu.o BUILD=build/none)"
has '... with the flag for vectors of tests' -Wno-psabi "$(would build/none/tests/avx512.o BUILD=build/none)"
has '... with the flag that keeps unrolled code short' \
	-O1 "$(would build/none/again/lib/product/product_packed.o BUILD=build/none)"
has '... with the flag for a limit of the compiler' \
	-fno-sanitize=bounds "$(would build/san/lib/product/product.o SAN=1)"
has '... with sanitizers' -fsanitize=address,undefined "$(would build/san/lib/base/cpu.o SAN=1)"
has '... and CFLAGS with them' -Werror "$(would build/san/lib/base/cpu.o SAN=1)"
has '... with the counts of coverage' --coverage "$(would build/coverage/lib/base/cpu.o COVERAGE=1)"
links() { make -C tree -n V=1 BUILD=build/none "$@" bin/gar-order | grep -e ' -o bin/gar-order '; }
unset HDF5_A HDF5_TRIED	# of the make that runs this test
has 'an archive of HDF5 that does not link: the shared library' -lhdf5 "$(links CC=false)"
has '... also with SHARED=1' -lhdf5 "$(links SHARED=1)"
is 'tools and a test in one run: one archive' \
	"$(make -C tree -n V=1 BUILD=build/none all build/none/tests/half | grep -c 'rcs build/none/libptq.a')" 1
is 'none of these runs builds anything' "$(everything | diff before -)" ''
done_testing
