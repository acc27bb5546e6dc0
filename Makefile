# ptqtools: make, make check, make demo; make help lists the rest

VERSION  := $(shell cat VERSION)
PREFIX   ?= /usr/local
CC       := gcc
CFLAGS   ?= -O3 -g
WARNINGS := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes

# Debian names; the OpenMP build of OpenBLAS shares its thread pool with ours.
BUILD_PACKAGES := gcc libc6-dev pkg-config libhdf5-dev libopenblas-openmp-dev liblapacke-dev libjansson-dev libgsl-dev nettle-dev libpcre2-dev libutf8proc-dev libpng-dev libjpeg-dev gnuplot-nox
CHECK_PACKAGES := perl hdf5-tools python3-h5py python3-jinja2 libcmocka-dev cppcheck shellcheck man-db valgrind aspell aspell-en parallel

LIBRARIES := hdf5 jansson gsl nettle libpcre2-8 libutf8proc libpng libjpeg
BLAS     := $(firstword $(wildcard /usr/lib/*/openblas-openmp))
CPPFLAGS += -std=c17 -D_GNU_SOURCE -DPTQ_VERSION='"$(VERSION)"' -Ilib \
	$(shell pkg-config --cflags $(LIBRARIES) 2>/dev/null) -I$(subst /usr/lib,/usr/include,$(BLAS))
# HDF5 and LAPACKE from their archives, if they link: the shared libraries load 36 others (TLS, Kerberos, Fortran), which
# takes three quarters of a tool's start. The archive of HDF5 1.14 itself needs some of these. SHARED=1 links the shared
# ones. LAPACK is that of OpenBLAS in both.
HDF5_SO  := $(shell pkg-config --libs hdf5 2>/dev/null)
archive   = $(if $(SHARED),,$(wildcard $1))
ifndef HDF5_TRIED
HDF5_A   := $(patsubst %,% -lsz -lz,$(firstword $(wildcard $(patsubst -L%,%/libhdf5.a,$(filter -L%,$(HDF5_SO))))))
HDF5_A   := $(if $(HDF5_A),$(shell echo 'int H5Fopen(); int main() { return H5Fopen(); }' | \
	$(CC) -w -o /dev/null -x c - -x none $(HDF5_A) -lm 2>/dev/null && echo '$(HDF5_A)'))
ifneq ($(HDF5_SO),)	# else `deps` may install it before the next make
export HDF5_A HDF5_TRIED := yes
endif
endif
HDF5      = $(or $(if $(SHARED),,$(HDF5_A)),$(HDF5_SO))
LAPACKE   = $(or $(call archive,$(dir $(BLAS))liblapacke.a),-llapacke)
OTHERS   := $(shell pkg-config --libs $(filter-out hdf5 gsl,$(LIBRARIES)) 2>/dev/null)
LDLIBS    = $(HDF5) $(OTHERS) $(LAPACKE) -L$(BLAS) -Wl,-rpath,$(BLAS) -lopenblas -lgsl -lm
ifdef SAN
# A CFLAGS of the command line adds to these, and does not replace them.
override CFLAGS += -O1 -g -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer
BUILD    := build/san
else ifdef COVERAGE
CFLAGS   := -O2 -g
BUILD    := build/coverage
# Counters that are not atomic cost little; make coverage runs on one thread. Only what is to be covered has any.
COUNTED  := --coverage -fprofile-update=single -include tests/coverage.h -DCOUNTS='"$(CURDIR)/build/coverage"'
LDLIBS   += --coverage
build/coverage/lib/%.o build/coverage/bin/%.o: ALWAYS += $(COUNTED)
else
BUILD    := build
endif
APART    := $(SAN)$(COVERAGE)	# tools stay in $(BUILD)/bin
comma    := ,
# V=1 shows the commands
ifndef V
Q := @
endif
# Flags that some objects cannot do without, whatever CFLAGS the command line has.
ALWAYS   :=
COMPILE   = $(CC) $(CPPFLAGS) $(CFLAGS) $(ALWAYS) $(WARNINGS) -fopenmp -MMD -MP

SOURCES  := $(wildcard lib/*/*.c)
OBJECTS  := $(SOURCES:%.c=$(BUILD)/%.o)
TOOLS    := $(patsubst bin/%.c,%,$(wildcard bin/*.c))
TESTS    := $(patsubst tests/%.c,$(BUILD)/tests/%,$(filter-out tests/vq8.c,$(wildcard tests/*.c)))
# Tests that run a second time, with these files' AVX-512 in plain C, on any processor (tests/again.h).
TWICE    := $(BUILD)/tests/product-avx512 $(BUILD)/tests/bf16-avx512 $(BUILD)/tests/bf16_pass-avx512
AGAIN    := $(patsubst %,$(BUILD)/again/lib/%.o,num/bf16 num/few product/product product/product_exact product/product_integer \
	product/product_number product/product_packed)
TESTS    += $(TWICE)
# Tools with one more format and its quantizer (tests/vq8.h).
VQ8      := $(patsubst %,$(BUILD)/vq8/%.o,lib/num/format lib/transform/quantizer tests/vq8)
VQ8_BIN  := $(patsubst %,$(BUILD)/vq8/bin/%,awq-scale dpq-run eval-ppl exmy-pack exmy-sweep fbq-run msq-calib tensor-diff \
	tensor-join tensor-stats)
SCRIPTS  := $(wildcard tests/*.t)
READERS  := safetensors tokenizer template part gguf image
FUZZERS  := $(READERS:%=$(BUILD)/fuzz/%)
BENCHES  := $(patsubst %,$(BUILD)/tests/bench/%,kernels products branches modality device)
FAULT    := $(BUILD)/tests/fault/fault
# The module of GPUs of NVIDIA; and the same kernels on the processor, for tests (tests/cuda/plain.h).
MODULES  := $(if $(CUDA),$(BUILD)/cuda.so)
PLAIN    := $(BUILD)/plain.so
KERNELS  := $(filter-out library,$(patsubst lib/cuda/%.cu,%,$(wildcard lib/cuda/*.cu)))
NVCC     ?= nvcc
CUDA_ARCH ?= -gencode=arch=compute_80,code=sm_80 -gencode=arch=compute_89,code=sm_89 -gencode=arch=compute_90a,code=sm_90a

# make check T='NAME...': scripts, C tests or both of these names, and what their scripts run
ifeq ($(origin T),command line)
NAMES    := $(sort $(SCRIPTS:tests/%.t=%) $(TESTS:$(BUILD)/tests/%=%) fault)
UNKNOWN  := $(strip $(filter-out $(NAMES),$T))
NEAR     := $(strip $(foreach n,$(NAMES),$(foreach t,$(UNKNOWN),$(if $(findstring $t,$n)$(findstring $n,$t),$n))))
$(if $(strip $T),,$(error T= names no test; there are $(NAMES)))
$(if $(UNKNOWN),$(error no test is called $(UNKNOWN); there are $(or $(NEAR),$(NAMES))))
SCRIPTS  := $(filter $(T:%=tests/%.t),$(SCRIPTS))
TESTS    := $(filter $(T:%=$(BUILD)/tests/%),$(TESTS))
FUZZERS  := $(if $(filter fuzz,$T),$(FUZZERS))
BENCHES  := $(if $(filter bench,$T),$(BENCHES))
FAULT    := $(if $(filter fault,$T),$(FAULT))
VQ8_BIN  := $(if $(filter vq8,$T),$(VQ8_BIN))
endif

.PHONY: all help deps check bench bench-memory coverage lint static docs plots demo install uninstall clean packages check-deps deb check-cluster check-package
.DELETE_ON_ERROR:

ifneq ($(strip $(APART)),)
PROGRAMS := $(TOOLS:%=$(BUILD)/bin/%)
else
PROGRAMS := $(TOOLS:%=bin/%)
endif

# Missing libraries are named before the compiler runs. After `deps` a second make reads the new paths.
READY := $(if $(BLAS),$(shell pkg-config --exists $(LIBRARIES) 2>/dev/null && echo yes))

# A second make only then: with `make -j2 all build/tests/half` two would write the same files.
ifeq ($(READY),yes)
all check: programs
else
all: packages
	@$(MAKE) --no-print-directory programs
endif

.PHONY: check-doors tags programs test-programs fuzz fuzz-programs valgrind
programs: $(PROGRAMS) $(MODULES)
	@:
test-programs: programs $(TESTS) $(FUZZERS) $(FAULT) $(BENCHES) $(VQ8_BIN) $(PLAIN)
	@:

help:
	@echo 'make            build the tools into bin/'
	@echo 'make deps       install the libraries that it needs (Debian, Ubuntu)'
	@echo 'make CUDA=1     also build/cuda.so, for --device cuda (needs nvcc)'
	@echo 'make demo       deps, then the main job on the embedded model: a table and a plot'
	@echo 'make bench      every rate against the limit of the machine and against its peers'
	@echo 'make bench-memory  peak memory of each tool on a model of a billion parameters'
	@echo 'make check      every test; SAN=1 with sanitizers'
	@echo "make check T='NAME...'  of tests/NAME.t and tests/NAME.c only"
	@echo 'make check-doors  other programs on our files, and we on theirs; PEERS=PYTHON has them'
	@echo 'make coverage   lines that the tests run, by folder and file (gcov)'
	@echo 'make valgrind   short tests and every tool under valgrind'
	@echo 'make fuzz       libFuzzer programs of the readers (clang)'
	@echo 'make lint       warnings, cppcheck, shellcheck, layers, spelling, man pages'
	@echo 'make tags       names for editors (universal-ctags), functions made by CLONES() too'
	@echo 'make docs       OPTIONS of the man pages, as --help has them'
	@echo 'make plots      the plots of docs/results, from its tables'
	@echo 'make install    into PREFIX=$(PREFIX)'
	@echo 'make uninstall  removes from there what make install put'
	@echo 'make deb        a Debian package in build/deb, made by debhelper'
	@echo 'make check-package  as root: the package in a new Debian: built, installed, used and removed (debootstrap)'
	@echo 'make check-cluster  as root: a pipeline on a Slurm of this machine, disturbed; MODEL=, TEST=, CALIBRATION= for others'
	@echo 'make clean      remove what was built'

# tests/packages: if all libraries of the tools are there, a system without apt-get does not end it.
export READY
# Says what is missing, and stops.
packages:
	@tests/packages $(BUILD_PACKAGES)

deps:
	@tests/packages --install $(BUILD_PACKAGES)

check-deps:
	@tests/packages --install $(BUILD_PACKAGES) $(CHECK_PACKAGES)

# gcc 12 ends with an internal error on a bound of one of its arrays.
build/san/lib/product/product.o build/san/again/lib/product/product.o: ALWAYS += -fno-sanitize=bounds

$(BUILD)/libptq.a: $(OBJECTS)
	@rm -f $@
	$(Q)$(AR) rcs $@ $^

$(BUILD)/%.o: %.c VERSION
	@mkdir -p $(@D)
	$(if $(Q),@echo "  CC    $<")
	$(Q)$(COMPILE) -c -o $@ $<

ifneq ($(strip $(APART)),)
$(BUILD)/bin/%: $(BUILD)/bin/%.o $(BUILD)/libptq.a
else
bin/%: $(BUILD)/bin/%.o $(BUILD)/libptq.a
endif
	$(if $(Q),@echo "  LINK  $@")
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -fopenmp -o $@ $^ $(LDLIBS)

$(BUILD)/tests/%: $(BUILD)/tests/%.o $(BUILD)/libptq.a
	$(if $(Q),@echo "  LINK  $@")
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -fopenmp -o $@ $^ $(LDLIBS) -lcmocka

# It records arguments and results of the products of a forward pass.
$(BUILD)/tests/bf16_pass $(BUILD)/tests/bf16_pass-avx512: LDLIBS += -Wl,--wrap=product_input,--wrap=product_run

$(BUILD)/tests/avx512.o: ALWAYS += -Wno-psabi
# All its vectors are unrolled into scalars: -O3 takes half a minute.
$(BUILD)/again/lib/product/product_packed.o: ALWAYS += -O1
$(BUILD)/again/%.o: %.c VERSION
	@mkdir -p $(@D)
	$(if $(Q),@echo "  CC    $< (AVX-512 in plain C)")
	$(Q)$(COMPILE) -Wno-psabi -include tests/again.h -c -o $@ $<

$(TWICE): $(BUILD)/tests/%-avx512: $(BUILD)/again/tests/%.o $(AGAIN) $(BUILD)/libptq.a
	$(if $(Q),@echo "  LINK  $@")
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -fopenmp -o $@ $^ $(LDLIBS) -lcmocka

$(BUILD)/vq8/%.o: %.c VERSION
	@mkdir -p $(@D)
	$(if $(Q),@echo "  CC    $< (with vq8)")
	$(Q)$(COMPILE) -include tests/vq8.h -c -o $@ $<

$(BUILD)/vq8/bin/%: $(BUILD)/bin/%.o $(VQ8) $(BUILD)/libptq.a
	@mkdir -p $(@D)
	$(if $(Q),@echo "  LINK  $@")
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -fopenmp -o $@ $^ $(LDLIBS)

$(BENCHES): $(BUILD)/tests/bench/%: $(BUILD)/tests/bench/%.o $(BUILD)/libptq.a
	$(if $(Q),@echo "  LINK  $@")
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -fopenmp -o $@ $^ $(LDLIBS)

# Fuzzers of the readers: with main.c for the tests, with libFuzzer by `make fuzz`.
FUZZ_MAIN = $(BUILD)/tests/fuzz/main.o
FUZZ     := -O1 -g -fno-omit-frame-pointer -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=undefined
WRAP     := $(foreach f,malloc calloc realloc free strdup mmap munmap mremap,-Wl$(comma)--wrap=$f)

# The memory of HDF5 is its own: only ours is wrapped.
$(FUZZERS): SHARED := 1
$(FUZZERS): $(BUILD)/fuzz/%: $(BUILD)/tests/fuzz/%.o $(BUILD)/tests/fuzz/survive.o $(FUZZ_MAIN) $(BUILD)/libptq.a
	@mkdir -p $(@D)
	$(if $(Q),@echo "  LINK  $@")
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) $(WRAP) -fopenmp -o $@ $^ $(LDLIBS) $(FUZZ_LIBS)

# build/clang/fuzz/READER FOLDER: see docs/robustness.md
fuzz:
	@$(MAKE) --no-print-directory BUILD=build/clang CC=clang CFLAGS='$(FUZZ)' FUZZ_MAIN= \
		FUZZ_LIBS='-fsanitize=fuzzer -Wl,--wrap=probe_apart' fuzz-programs
fuzz-programs: $(FUZZERS)

# Calls of the C library that fail.
$(FAULT): $(BUILD)/tests/fault/fault.o | $(BUILD)/tests/fault/shim.so $(TOOLS:%=$(BUILD)/tests/fault/bin/%)
	$(if $(Q),@echo "  LINK  $@")
	$(Q)$(CC) $(CFLAGS) -o $@ $^

$(BUILD)/tests/fault/bin/%: SHARED := 1
$(BUILD)/tests/fault/bin/%: $(BUILD)/bin/%.o $(BUILD)/libptq.a
	@mkdir -p $(@D)
	$(if $(Q),@echo "  LINK  $@")
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -fopenmp -o $@ $^ $(LDLIBS)

$(BUILD)/tests/fault/shim.so: tests/fault/shim.c
	@mkdir -p $(@D)
	$(if $(Q),@echo "  LINK  $@")
	$(Q)$(CC) $(CPPFLAGS) -O1 -g $(WARNINGS) -shared -fPIC -o $@ $<

$(BUILD)/cuda/%.o: lib/cuda/%.cu VERSION
	@mkdir -p $(@D)
	$(if $(Q),@echo "  NVCC  $<")
	$(Q)$(NVCC) -std=c++20 -O3 $(CUDA_ARCH) -DPTQ_VERSION='"$(VERSION)"' -Ilib -Xcompiler -fPIC -MMD -MP -c -o $@ $<

$(BUILD)/cuda.so: $(KERNELS:%=$(BUILD)/cuda/%.o) $(BUILD)/cuda/library.o
	$(if $(Q),@echo "  LINK  $@")
	$(Q)$(NVCC) -shared -o $@ $^ -lcublas -lcublasLt -lcusolver

$(BUILD)/plain/%.o: lib/cuda/%.cu VERSION
	@mkdir -p $(@D)
	$(if $(Q),@echo "  CC    $< (kernels in plain C)")
	$(Q)$(COMPILE) -fPIC -x c -c -o $@ $<

$(BUILD)/plain/%.o: tests/cuda/%.c VERSION
	@mkdir -p $(@D)
	$(if $(Q),@echo "  CC    $<")
	$(Q)$(COMPILE) -fPIC -c -o $@ $<

$(PLAIN): $(KERNELS:%=$(BUILD)/plain/%.o) $(BUILD)/plain/plain.o
	$(if $(Q),@echo "  LINK  $@")
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -fopenmp -shared -o $@ $^ $(LAPACKE) -L$(BLAS) -Wl,-rpath,$(BLAS) -lopenblas -lm

.PRECIOUS: $(BUILD)/%.o
-include $(OBJECTS:.o=.d) $(TOOLS:%=$(BUILD)/bin/%.d) $(TESTS:%=%.d) $(wildcard $(BUILD)/cuda/*.d $(BUILD)/plain/*.d $(BUILD)/tests/*/*.d $(BUILD)/again/*/*.d $(BUILD)/again/lib/*/*.d $(BUILD)/vq8/*/*.d $(BUILD)/vq8/lib/*/*.d)

# As many tests at a time as there are processors, whose tools share them: waiting threads sleep.
check: PROVE ?= -j$(shell nproc)
check: export OMP_WAIT_POLICY ?= passive
check: check-deps
	@$(MAKE) --no-print-directory test-programs
	@PTQ_BIN=$(abspath $(dir $(firstword $(PROGRAMS)))) PTQ_BUILD=$(abspath $(BUILD)) prove $(PROVE) -e '' $(SCRIPTS) \
		$(filter-out $(BUT:%=$(BUILD)/tests/%),$(TESTS)) $(FAULT)

# Without tests whose subject is not lib and bin (scripts, pages, benchmarks), or which run again what others run; what is
# killed loses its counts. On one thread, since counters are not atomic.
COUNT = OMP_THREAD_LIMIT=1 OMP_NUM_THREADS=1 $(MAKE) --no-print-directory COVERAGE=1 PROVE=-j2
UNCOUNTED := kill pipelines steps papers bench make same
coverage:
	@mkdir -p build/coverage; find build/coverage -name '*.gcda' -delete
	-@$(COUNT) check SCRIPTS='$(filter-out $(UNCOUNTED:%=tests/%.t),$(SCRIPTS))'
	-@$(COUNT) check PTQ_CPU=plain SCRIPTS= FAULT=
	-@grep -q '^flags.* avx2' /proc/cpuinfo && $(COUNT) check PTQ_CPU=avx2 SCRIPTS= FAULT=
	@tests/coverage build/coverage

# What other programs make of our files, and we of theirs: PEERS=PYTHON, one that has their packages; TEMPLATES=FOLDER of chat templates
check-doors: programs
	@PTQ_BIN=$(abspath $(dir $(firstword $(PROGRAMS)))) prove $(PROVE) -e '' $(wildcard tests/doors/*.t)

valgrind: test-programs
	@PTQ_BIN=$(abspath bin) PTQ_BUILD=$(abspath $(BUILD)) prove -v tests/valgrind.sh

bench: all
	@$(MAKE) --no-print-directory $(BENCHES)
	@tests/bench/run

bench-memory: all
	@tests/bench/memory

lint: check-deps
	@$(MAKE) --no-print-directory test-programs BUILD=build/lint CFLAGS='-O1 -Werror' PROGRAMS='$(TOOLS:%=build/lint/bin/%.o)'
	@$(MAKE) --no-print-directory static

# What needs no compiler. Variables of main are set by option_parse() through rows, which cppcheck does not see.
static:
	cppcheck --quiet --std=c11 --error-exitcode=1 --inline-suppr --enable=warning,portability \
		--suppress=missingIncludeSystem --suppress='uninitvar:bin/*' --suppress='ctuuninitvar:bin/*' \
		--suppress='ctuuninitvar:lib/base/selection.c' \
		--library=tests/cppcheck.cfg -D__cppcheck__ -DPTQ_VERSION='""' -Ilib lib bin
	ls docs/package/changelog docs/package/completion.bash tests/*.t tests/*.sh tests/packages tests/layers tests/pages tests/coverage tests/lib/slurm/* tests/doors/*.sh tests/doors/*.t tests/bench/run tests/bench/memory tests/bench/cuda pipelines/*.sh pipelines/lib/*.sh pipelines/each/* docs/results/plots.sh .ci/run | \
		xargs -P 2 -n 12 shellcheck -x -S warning
	@tests/layers
	@tests/style
	@tests/spelling
	@$(MAKE) --no-print-directory programs
	@PTQ_BIN=$(abspath $(dir $(firstword $(PROGRAMS)))) tests/pages

# OPTIONS of the man pages, by asking the tools; the table of Hadamard matrices.
docs: programs $(BUILD)/tests/hadamard
	@for t in $(TOOLS); do \
		PTQ_BIN=$(abspath $(dir $(firstword $(PROGRAMS)))) docs/man/options $$t >$(BUILD)/page && cp $(BUILD)/page docs/man/$$t.1 || exit 1; \
	done
	@PTQ_BIN=$(abspath $(dir $(firstword $(PROGRAMS)))) docs/man/options ptqtools >$(BUILD)/page && cp $(BUILD)/page docs/man/ptqtools.7
	@{ sed '/^| order/,$$d' docs/hadamard.md; $(BUILD)/tests/hadamard table; } >$(BUILD)/page && cp $(BUILD)/page docs/hadamard.md

# The plots of docs/results, from its tables.
plots:
	@docs/results/plots.sh

demo: deps
	@$(MAKE) --no-print-directory $(if $(filter -j%,$(MAKEFLAGS)),,-j$(shell nproc)) all
	@pipelines/dpq-table4.sh

# Programs of pipelines, and what they read: the list of papers' items, parts of scripts, plots, models, questions, images.
PIPELINES = $(wildcard pipelines/*.sh pipelines/*.awk pipelines/each/*)
EMBEDDED = prose vlm vlm-pre vlm-post
DATA = $(wildcard docs/papers.md pipelines/lib/* pipelines/plots/* \
	$(foreach m,$(EMBEDDED),$(addprefix data/$m/,*.json *.safetensors *.jsonl */*.png)))
# A file for each command, which bash loads when it is first completed.
COMPLETIONS := share/bash-completion/completions
install uninstall: export INTO := $(DESTDIR)$(PREFIX)
install: all
	install -d "$$INTO/bin" "$$INTO/share/man/man1" "$$INTO/share/man/man7" "$$INTO/$(COMPLETIONS)"
	install -m 755 $(TOOLS:%=bin/%) "$$INTO/bin"
	$(if $(CUDA),install -D -m 755 $(BUILD)/cuda.so "$$INTO/lib/ptqtools/cuda.so")
	install -m 644 $(wildcard docs/man/*.1) "$$INTO/share/man/man1"
	install -m 644 docs/man/ptqtools.7 "$$INTO/share/man/man7"
	install -m 644 docs/package/completion.bash "$$INTO/$(COMPLETIONS)/ptqtools"
	@for f in $(TOOLS); do ln -sf ptqtools "$$INTO/$(COMPLETIONS)/$$f" || exit 1; done
	@for f in $(PIPELINES); do install -D -m 755 $$f "$$INTO/share/ptqtools/$$f" || exit 1; done
	install -m 644 docs/ptqtools.py "$$INTO/share/ptqtools"
	@for f in $(DATA); do install -D -m 644 $$f "$$INTO/share/ptqtools/$$f" || exit 1; done

# Folders that others use stay; those of share/ptqtools go unless they hold something else.
uninstall:
	@rm -f "$$INTO/lib/ptqtools/cuda.so"; [ ! -d "$$INTO/lib/ptqtools" ] || rmdir --ignore-fail-on-non-empty "$$INTO/lib/ptqtools"
	@for f in $(TOOLS); do rm -f "$$INTO/bin/$$f" "$$INTO/$(COMPLETIONS)/$$f" || exit 1; done
	@rm -f "$$INTO/$(COMPLETIONS)/ptqtools" "$$INTO/share/man/man7/ptqtools.7"
	@for f in $(notdir $(wildcard docs/man/*.1)); do rm -f "$$INTO/share/man/man1/$$f" || exit 1; done
	@for f in $(PIPELINES) $(DATA); do rm -f "$$INTO/share/ptqtools/$$f" || exit 1; done
	@rm -f "$$INTO/share/ptqtools/ptqtools.py" "$$INTO/share/ptqtools/__pycache__"/ptqtools.*.pyc \
		$(patsubst pipelines/lib/%.py,"$$INTO/share/ptqtools/pipelines/lib/__pycache__"/%.*.pyc,$(filter %.py,$(DATA)))
	@[ ! -d "$$INTO/share/ptqtools" ] || find "$$INTO/share/ptqtools" -depth -type d -exec rmdir --ignore-fail-on-non-empty {} +

# In a copy of the sources with a folder debian, by the flags of docs/package/debian/rules; its changelog is docs/changes.md.
DEB := build/deb/ptqtools
deb:
	@command -v dh >/dev/null || { echo 'packages are missing; as root: apt-get install debhelper' >&2; exit 1; }
	@rm -rf build/deb && mkdir -p $(DEB)
	@tar -chf build/deb/sources.tar --exclude=__pycache__ CITATION.cff LICENSE Makefile README.md VERSION data docs lib \
		pipelines tests/packages $(wildcard bin/*.c)
	@tar -xf build/deb/sources.tar -C $(DEB) && rm build/deb/sources.tar
	@cp -R docs/package/debian $(DEB) && docs/package/changelog docs/changes.md >$(DEB)/debian/changelog
	$(Q)cd $(DEB) && env -u CFLAGS -u MAKEFLAGS -u MAKELEVEL -u MFLAGS \
		dpkg-buildpackage -b -us -uc >../log 2>&1 || { tail -n 20 ../log >&2; exit 1; }
	@rm -rf $(DEB)
	@ls build/deb/*.deb

check-cluster: programs
	@tests/packages --install munge slurmctld slurmd slurm-client
	@PTQ_BIN=$(abspath bin) prove -v tests/cluster.sh$(if $(MODEL), :: '$(MODEL)' '$(TEST)' '$(CALIBRATION)')

check-package:
	@tests/packages --install debootstrap lintian
	@prove -v tests/package.sh

tags:
	ctags --regex-C='/^CLONES\([^,]*,[^,]*, *([A-Za-z_0-9]+)/\1/f/' -R lib bin

clean:
	rm -rf build tags $(TOOLS:%=bin/%)
