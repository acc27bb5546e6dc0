/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * fault.c -- each call of write, fsync, rename, mmap, malloc, ... of the tools fails once
 *
 * Each tool runs on the smallest model, with shim.c loaded before its libraries. First the first call of a
 * function fails, then the second, until a run has no further call. For functions that are called thousands
 * of times (malloc), the first FIRST calls fail, then SAMPLES further ones at equal distances, or all with
 * FAULT=all. A run must end by itself within SECONDS, and either
 *	print one line with the reason, with status 1 or 2, and leave nothing in the folder of the result,
 *	and nothing on the pipe that the next tool accepts as a result,
 * or	produce the same bytes as an undisturbed run, with status 0: a library recovered, or the failure
 *	has no effect. If the call was made by a library, the same objects are enough.
 * If the call was made by a library, the library may crash or print its own message (HDF5 1.10 does); the
 * number of such cases is printed. The folder must be clean then too.
 *
 * The tools are those in bin, in the folder of this program, linked with the shared HDF5: so the shim
 * can separate its calls from those of the tools. Prints TAP; runs in the project's folder.
 * usage: fault [RUN [FUNCTION]]
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { RESUMED = 4 };	/* with --resume only so many of the functions fail, from the first of the list */
enum { FIRST = 24, SAMPLES = 10, SECONDS = 30, MAX = 1 << 20 };

/* The result is out/r. pipe: standard output is a pipe that is read here. With --resume r.part may stay, and
 * an undisturbed run must continue from it. */
static const struct { const char *name, *command; bool pipe; } runs[] = {
	{ "model-import", "model-import -q tiny -o out/r", false },
	{ "model-import, pipe", "model-import -q tiny", true },
	{ "tokenize", "tokenize -q --model model.h5 text -o out/r", false },
	{ "images-import", "images-import -q --model tests/images/llava.h5 --tokens holes.h5 "
		"tests/fuzz/seeds/image/rgb8.png tests/fuzz/seeds/image/progressive.jpg -o out/r",
		false },
	{ "hessian-accum", "hessian-accum -q -j1 --tokens tokens.h5 --ctx 8 model.h5 -o out/r", false },
	{ "gar-order", "gar-order -q --group 4 hessian.h5 -o out/r", false },
	{ "dpq-run", "dpq-run -q -j1 --compensate none --group 4 model.h5 -o out/r", false },
	{ "dpq-run, pipe", "dpq-run -q -j1 --hessian hessian.h5 --group 4 --compute e4m3fn stream.h5", true },
	{ "hadamard-rotate", "hadamard-rotate -q -j1 --check model.h5 -o out/r", false },
	{ "msq-calib",
		"msq-calib -q -j1 --act-format int8 --tokens tokens.h5 --ctx 8 model.h5 -o out/r", false },
	{ "fbq-run", "fbq-run -q -j1 --method eora --group 4 --rank 2 --hessian hessian.h5 model.h5 -o out/r",
		false },
	{ "eval-ppl", "eval-ppl -q -j1 --tokens tokens.h5 --ctx 8 quantized.h5 -o out/r", false },
	{ "eval-ppl, against",
		"eval-ppl -q -j1 --tokens tokens.h5 --ctx 8 stream.h5 --against model.h5 -o out/r", false },
	{ "eval-choice",
		"eval-choice -q -j1 --questions questions.jsonl quantized.h5 -o out/r", false },
	{ "aifs-order", "aifs-order -q tokens.h5 -o out/r", false },
	{ "dpq-run, resume", "dpq-run -q -j1 --compensate none --group 4 --resume model.h5 -o out/r", false },
};
static const char *const functions[] = { "write", "fsync", "rename", "ftruncate", "posix_fallocate", "read",
	"fork", "mmap", "malloc" };

struct end {
	int status;
	bool reached, late, library;
	size_t lines, left, n, gone_on;		/* gone_on: bytes of the result of the next run */
	char line[256], who[64];
	unsigned char *data, *after;
};

static char shim[4096];
static int number, bad;
static bool resuming;

static _Noreturn void give_up(const char *what)
{
	printf("Bail out! %s: %s\n", what, strerror(errno));
	exit(1);
}

static void ok(bool good, const char *fmt, const char *run, const char *function, long done)
{
	printf("%sok %d - ", good ? "" : "not ", ++number);
	printf(fmt, run, function, done);
	putchar('\n');
	fflush(stdout);
	bad |= !good;
}

static unsigned char *load(const char *path, size_t *n)
{
	unsigned char *p = malloc(MAX);
	FILE *f = fopen(path, "rb");

	*n = 0;
	if (!p)
		give_up("memory");
	if (f) {
		*n = fread(p, 1, MAX, f);
		fclose(f);
	}
	return p;
}

/* Counts files in out/ except `but`, and removes them for the next run. */
static size_t clear_folder(const char *but)
{
	DIR *d = opendir("out");
	size_t n = 0;

	for (struct dirent *e; d && (e = readdir(d));)
		if (strcmp(e->d_name, ".") && strcmp(e->d_name, "..") && strcmp(e->d_name, but))
			n++, unlinkat(dirfd(d), e->d_name, 0);
	closedir(d);
	return n;
}

static void exec(const char *command, bool to_pipe, const char *function, long at)
{
	char *word[32], *copy = strdup(command), k[32];
	size_t n = 0;
	int out = open(to_pipe ? "piped" : "stdout", O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0600);
	int err = open("stderr", O_WRONLY | O_CREAT | O_TRUNC, 0600), in = open("/dev/null", O_RDONLY);

	for (char *w = strtok(copy, " "); w && n < 31; w = strtok(NULL, " "))
		word[n++] = w;
	word[n] = NULL;
	snprintf(k, sizeof k, "%ld", at);
	setenv("PTQ_FAIL", function, 1);
	setenv("PTQ_FAIL_AT", k, 1);
	setenv("PTQ_FAIL_MARK", "mark", 1);
	setenv("LD_PRELOAD", shim, 1);
	dup2(in, 0), dup2(out, 1), dup2(err, 2);
	setrlimit(RLIMIT_CORE, &(struct rlimit){ 0, 0 });
	alarm(SECONDS);			/* exec keeps it */
	execvp(word[0], word);
	_exit(127);
}

/* Runs the tool again with the files that the run has left. */
static void go_on(const char *command, struct end *e)
{
	int status;
	pid_t child = fork();

	if (child < 0)
		give_up("fork");
	if (!child)
		exec(command, false, "none", 0);
	if (waitpid(child, &status, 0) < 0)
		give_up("wait");
	e->after = load("out/r", &e->gone_on);
	e->gone_on = status ? 0 : e->gone_on;
	clear_folder("");
}

static struct end run(const char *command, bool to_pipe, const char *function, long at)
{
	struct end e = { 0 };
	pid_t child;
	FILE *f;

	unlink("mark");
	clear_folder("");
	child = fork();
	if (child < 0)
		give_up("fork");
	if (!child)
		exec(command, to_pipe, function, at);
	if (waitpid(child, &e.status, 0) < 0)
		give_up("wait");
	e.late = WIFSIGNALED(e.status) && WTERMSIG(e.status) == SIGALRM;
	e.reached = !access("mark", F_OK);
	f = fopen("mark", "r");
	e.library = f && fgets(e.who, sizeof e.who, f) && strncmp(command, e.who, strlen(e.who));
	if (f)
		fclose(f);
	e.data = load(to_pipe ? "piped" : "out/r", &e.n);
	f = fopen("stderr", "r");
	for (char line[256]; f && fgets(line, sizeof line, f);)
		if (!strstr(line, ": warning: ")) {	/* -q keeps warnings */
			memcpy(e.line, line, sizeof line);
			e.lines++;
		}
	if (f)
		fclose(f);
	e.left = clear_folder(resuming && e.status ? "r.part" : "");
	if (resuming && e.status)
		go_on(command, &e);
	return e;
}

/* Whether a truncated stream would be accepted as complete; only the undisturbed stream is. */
static bool same(const struct end *a, const struct end *b)
{
	return a->n == b->n && !memcmp(a->data, b->data, a->n);
}

static void store(const char *path, const struct end *e)
{
	FILE *f = fopen(path, "wb");

	if (!f || fwrite(e->data, 1, e->n, f) != e->n || fclose(f))
		give_up(path);
}

/* Whether h5diff finds no difference, nor objects that it cannot compare: a call inside libhdf5 that fails
 * may move objects in the file. */
static bool same_objects(const struct end *a, const struct end *b)
{
	store("a.h5", a), store("b.h5", b);
	return !system("test -z \"$(h5diff -c a.h5 b.h5 2>&1)\"");
}

/* Whether the run has status 1 or 2 and one line. */
static bool clean(const struct end *e)
{
	return WIFEXITED(e->status) && (WEXITSTATUS(e->status) == 1 || WEXITSTATUS(e->status) == 2) &&
		e->lines == 1;
}

static const char *wrong(const struct end *e, const struct end *good, bool to_pipe)
{
	if (e->late)
		return "comes to no end";
	if (!e->status)
		return same(e, good) || (e->library && same_objects(e, good)) ? NULL :
			"status 0, and another result";
	if (resuming && (e->gone_on != good->n || memcmp(e->after, good->data, good->n)))
		return "the next run does not continue";
	if (e->library && same(e, good) && e->left <= 1)
		return NULL;		/* the result existed before */
	if (!to_pipe && e->left)
		return "a file is left";
	if (to_pipe && same(e, good))
		return "the whole result, and a failure";
	return !e->library && !clean(e) ? "no clean end" : NULL;
}

static void each(const char *name, const char *command, bool to_pipe, const char *function,
	const struct end *good)
{
	bool all = getenv("FAULT") && !strcmp(getenv("FAULT"), "all");
	long done = 0, faults = 0, theirs = 0, last = 1 << 24, low = FIRST, step = 1;

	/* counts the calls, over which samples are spread */
	while (!all && last - low > FIRST / 4 && low < last) {
		long k = last == 1 << 24 ? 2 * low : (low + last) / 2;
		struct end e = run(command, to_pipe, function, k);

		free(e.data), free(e.after);
		*(e.reached ? &low : &last) = k;
	}
	if (!all && last - FIRST > SAMPLES)
		step = (last - FIRST) / SAMPLES;
	for (long k = 1;; k += k < FIRST ? 1 : step) {
		struct end e = run(command, to_pipe, function, k);
		const char *what = e.reached || e.late ? wrong(&e, good, to_pipe) : NULL;
		bool end = !e.reached;

		if (what && ++faults < 20)
			printf("# %s: %s number %ld of %s: %s: status %d, %zu lines: %s%s", name, function, k,
				e.who, what, e.status, e.lines, e.line, e.lines ? "" : "\n");
		theirs += e.reached && e.library && e.status && !clean(&e);
		free(e.data), free(e.after);
		if (end)
			break;
		done++;
	}
	ok(!faults, "%s: %s fails, %ld times", name, function, done);
	if (theirs)
		printf("# %s: %s: in %ld of them a library stopped the program, or spoke itself\n", name,
			function, theirs);
}

/* Creates the inputs in a separate folder; sets PATH for the tools and the path of the shim. */
static void prepare(const char *self, char folder[])
{
	char *tiny = realpath("tests/tiny", NULL), *tests = realpath("tests", NULL);
	char *program = realpath(self, NULL), *path;

	if (!tiny || !tests || !program || !mkdtemp(folder))
		give_up("tests/tiny");
	*strrchr(program, '/') = 0;
	if (asprintf(&path, "%s/bin:%s", program, getenv("PATH")) < 0)
		give_up("PATH");
	snprintf(shim, sizeof shim, "%s/shim.so", program);
	setenv("PATH", path, 1);
	setenv("OPENBLAS_NUM_THREADS", "1", 1);
	if (access(shim, R_OK) || chdir(folder) || symlink(tiny, "tiny") || symlink(tests, "tests") ||
	    system("mkdir out && model-import -q tiny -o model.h5 && printf 'once on\\377\\n' >text &&"
		"echo '{\"task\": \"t\", \"context\": \"on\", \"choices\": [\"no\"], \"gold\": 0}'"
		" >questions.jsonl &&"
		"model-import -q tiny | cat >stream.h5 &&"
		"printf 'A \\001 and \\001' | tokenize -q --bytes -o holes.h5 &&"
		"sample-tokens -q -j1 --tokens 32 --ctx 8 model.h5 -o tokens.h5 &&"
		"hessian-accum -q -j1 --tokens tokens.h5 --ctx 8 model.h5 -o hessian.h5 &&"
		"dpq-run -q -j1 --compensate none --group 4 model.h5 -o quantized.h5"))
		give_up("the inputs");
	free(tiny), free(tests), free(program), free(path);
}

int main(int argc, char *argv[])
{
	const char *only = argc > 1 ? argv[1] : "", *what = argc > 2 ? argv[2] : "";
	char folder[] = "/tmp/fault.XXXXXX", *clean_up = NULL;

#ifdef __SANITIZE_ADDRESS__
	printf("1..0 # SKIP the sanitizer has a malloc of its own\n");
	return 0;
#endif
	prepare(argv[0], folder);
	for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) {
		struct end good;

		if (*only && strcmp(runs[i].name, only))
			continue;
		resuming = strstr(runs[i].command, "--resume");
		good = run(runs[i].command, runs[i].pipe, "none", 0);
		if (good.status || !good.n)
			ok(false, "%s: undisturbed%s", runs[i].name, "", 0);
		for (size_t k = 0; !good.status && k < sizeof functions / sizeof *functions; k++)
			if ((!*what || !strcmp(what, functions[k])) && (!resuming || k < RESUMED))
				each(runs[i].name, runs[i].command, runs[i].pipe, functions[k], &good);
		free(good.data), free(good.after);
	}
	printf("1..%d\n", number);
	if (chdir("/") || asprintf(&clean_up, "rm -rf '%s'", folder) < 0 || system(clean_up))
		return 1;
	free(clean_up);
	return bad;
}
