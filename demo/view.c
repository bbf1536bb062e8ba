/*
 * view SEATS AGENTS BEGAN: shows which agent holds which task, five times a second on a terminal,
 * otherwise a line now and then. Ends when every task is Done; 1 if that takes too long. It asks
 * the queue (`pawl status --json`). Only the agents' seats come from the folder SEATS, one file for
 * each agent. BEGAN is in microseconds.
 */
#include <jansson.h>
#include <langinfo.h>
#include <locale.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#define FRAME_MS 200
#define LINE_MS 2000
#define PATIENCE_MS 60000
#define AROUND 4 /* lines of a frame that are not agents, plus the cursor's */

enum paint { PLAIN, BOLD, DIM, RED, GREEN, YELLOW, BLUE, CYAN };

struct screen {
	bool terminal, color, blocks;
	int rows, columns, drawn;
};

static volatile sig_atomic_t told_to_stop;
static struct screen screen;
static const char *mcp_sessions;
static int agents;
static int64_t began_ms;

static void stop(int sig)
{
	(void)sig;
	told_to_stop = 1;
}

static int64_t wall_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* "2026-02-06T10:30:00.123Z" */
static int64_t parse_ms(const char *text)
{
	struct tm tm = { 0 };
	const char *rest = text ? strptime(text, "%Y-%m-%dT%H:%M:%S", &tm) : NULL;

	return rest ? (int64_t)timegm(&tm) * 1000 + strtol(*rest == '.' ? rest + 1 : rest, NULL, 10)
		    : 0;
}

static json_t *ask(void)
{
	FILE *in = popen("\"$PAWL\" status --json 2>/dev/null", "re");
	json_t *o;

	if (!in)
		return NULL;
	o = json_loadf(in, 0, NULL);
	pclose(in);
	return o;
}

static int64_t count(const json_t *overview, const char *status)
{
	return json_integer_value(json_object_get(json_object_get(overview, "counts"), status));
}

/* --- a frame ------------------------------------------------------------------------------------- */

static const char *paint(enum paint p)
{
	static const char *const codes[] = {
		[PLAIN] = "\033[0m", [BOLD] = "\033[1m",   [DIM] = "\033[0;2m",
		[RED] = "\033[31m",  [GREEN] = "\033[32m", [YELLOW] = "\033[33m",
		[BLUE] = "\033[34m", [CYAN] = "\033[36m",
	};

	return screen.color ? codes[p] : "";
}

static void end_line(void)
{
	fputs("\033[K\n", stdout);
	screen.drawn++;
}

static void bar(const char *full, int n)
{
	while (n-- > 0)
		fputs(full, stdout);
}

static void who_sits(int mcp_session, char *name, int size)
{
	char path[4096];
	FILE *in;

	name[0] = '\0';
	snprintf(path, sizeof(path), "%s/%d", mcp_sessions, mcp_session);
	in = fopen(path, "re");
	if (!in)
		return;
	if (fgets(name, size, in))
		name[strcspn(name, "\n")] = '\0';
	fclose(in);
}

static const json_t *held_by(const json_t *overview, const char *name)
{
	const json_t *task;
	size_t i;

	json_array_foreach(json_object_get(overview, "held"), i, task) {
		const json_t *lock = json_object_get(task, "lock");
		const char *holder = json_string_value(json_object_get(lock, "holder"));

		if (holder && !strcmp(holder, name) && json_is_true(json_object_get(lock, "live")))
			return task;
	}
	return NULL;
}

/* The rest of the lease. */
static void draw_lease(const json_t *lock)
{
	double left = json_number_value(json_object_get(lock, "expires_in"));
	double ttl = json_number_value(json_object_get(lock, "ttl"));
	int n = ttl > 0 ? (int)(left / ttl * 8 + 0.5) : 0;

	n = n < 0 ? 0 : n > 8 ? 8 : n;
	fputs(paint(n > 4 ? GREEN : n > 2 ? YELLOW : RED), stdout);
	bar(screen.blocks ? "▪" : "=", n);
	fputs(paint(DIM), stdout);
	bar(screen.blocks ? "·" : ".", 8 - n);
	fputs(paint(PLAIN), stdout);
}

static void draw_task(const json_t *task)
{
	const json_t *lock = json_object_get(task, "lock");
	const char *status = json_string_value(json_object_get(task, "status"));
	double held = (double)(wall_ms() -
			       parse_ms(json_string_value(json_object_get(lock, "acquired_at")))) /
		      1000;
	bool works = status && !strcmp(status, "In Progress");

	printf("%s%-5s%s %-11s %4.1f s  ", paint(CYAN),
	       json_string_value(json_object_get(task, "id")), paint(PLAIN),
	       works    ? "In Progress"
	       : status ? status
			: "",
	       held > 0 ? held : 0);
	draw_lease(lock);
	if (screen.columns >= 70)
		printf("  %.*s", screen.columns - 51,
		       json_string_value(json_object_get(task, "title")));
}

static void draw_agent(const json_t *overview, int mcp_session)
{
	char name[64];
	const json_t *task;

	who_sits(mcp_session, name, sizeof(name));
	if (!strncmp(name, "killed ", 7)) {
		task = held_by(overview, name + 7);
		printf("  %s%-12s%s ", paint(RED), name + 7, paint(PLAIN));
		printf("%skilled -9%s", paint(RED), paint(PLAIN));
		if (task)
			printf("%s, and %s comes back when its lease ends%s", paint(DIM),
			       json_string_value(json_object_get(task, "id")), paint(PLAIN));
	} else {
		task = held_by(overview, name);
		printf("  %s%-12s%s ", paint(BOLD), name, paint(PLAIN));
		if (task)
			draw_task(task);
		else
			printf("%slooks for work%s", paint(DIM), paint(PLAIN));
	}
	end_line();
}

/* Locks whose holders have no seat any more. */
static int orphans(const json_t *overview)
{
	const json_t *task;
	size_t i;
	int n = 0;

	json_array_foreach(json_object_get(overview, "held"), i, task) {
		const char *holder =
			json_string_value(json_object_get(json_object_get(task, "lock"), "holder"));
		bool sits = false;
		char name[64];

		for (int mcp_session = 1; mcp_session <= agents && !sits; mcp_session++) {
			who_sits(mcp_session, name, sizeof(name));
			sits = holder && !strcmp(name, holder);
		}
		n += !sits;
	}
	return n;
}

static void draw_progress(const json_t *overview)
{
	const struct {
		const char *status;
		enum paint color;
	} parts[] = { { "Done", GREEN },
		      { "Review", BLUE },
		      { "In Progress", CYAN },
		      { "Blocked", YELLOW },
		      { "Failed", RED } };
	int64_t total = json_integer_value(json_object_get(overview, "total")), sum = 0;
	int width = screen.columns - 16, at = 0;

	fputs("  ", stdout);
	for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++) {
		int to;

		sum += count(overview, parts[i].status);
		to = total ? (int)(sum * width / total) : 0;
		fputs(paint(parts[i].color), stdout);
		bar(screen.blocks ? (i ? "▒" : "█") : (i ? "+" : "#"), to - at);
		at = to;
	}
	fputs(paint(DIM), stdout);
	bar(screen.blocks ? "░" : ".", width - at);
	printf("%s %s%3lld%s / %lld", paint(PLAIN), paint(BOLD), (long long)count(overview, "Done"),
	       paint(PLAIN), (long long)total);
	end_line();
	printf("  %sdone %lld%s  %sreview %lld%s  %sworking %lld%s  %sblocked %lld%s  %sfailed %lld%s  ready %lld"
	       "  %sorphaned %d%s",
	       paint(GREEN), (long long)count(overview, "Done"), paint(PLAIN), paint(BLUE),
	       (long long)count(overview, "Review"), paint(PLAIN), paint(CYAN),
	       (long long)count(overview, "In Progress"), paint(PLAIN), paint(YELLOW),
	       (long long)(count(overview, "Blocked") + count(overview, "Needs Help")),
	       paint(PLAIN), paint(RED), (long long)count(overview, "Failed"), paint(PLAIN),
	       (long long)count(overview, "Ready"), paint(DIM), orphans(overview), paint(PLAIN));
	end_line();
}

static void measure(void)
{
	struct winsize size = { 0 };

	ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
	screen.rows = size.ws_row ? size.ws_row : 24;
	screen.columns = size.ws_col ? size.ws_col : 80;
}

static void draw_frame(const json_t *overview)
{
	int fit;

	if (screen.drawn)
		printf("\033[%dA\r", screen.drawn);
	screen.drawn = 0;
	measure();
	fit = screen.rows - AROUND < agents ? screen.rows - AROUND : agents;
	printf("  %spawl%s  %d agents, one queue%s  %.1f s%s", paint(BOLD), paint(PLAIN), agents,
	       paint(DIM), (double)(wall_ms() - began_ms) / 1000, paint(PLAIN));
	end_line();
	for (int mcp_session = 1; mcp_session <= fit; mcp_session++)
		draw_agent(overview, mcp_session);
	draw_progress(overview);
	fflush(stdout);
}

static void print_line(const json_t *overview)
{
	printf("%5.1f s  done %lld of %lld, in progress %lld, review %lld, blocked %lld, failed %lld, orphaned %d\n",
	       (double)(wall_ms() - began_ms) / 1000, (long long)count(overview, "Done"),
	       (long long)json_integer_value(json_object_get(overview, "total")),
	       (long long)count(overview, "In Progress"), (long long)count(overview, "Review"),
	       (long long)(count(overview, "Blocked") + count(overview, "Needs Help")),
	       (long long)count(overview, "Failed"), orphans(overview));
	fflush(stdout);
}

/* --- the loop ------------------------------------------------------------------------------------ */

static void pause_ms(int64_t ms)
{
	struct timespec t = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000 };

	nanosleep(&t, NULL);
}

static bool complete(const json_t *overview)
{
	int64_t total = json_integer_value(json_object_get(overview, "total"));

	return total && count(overview, "Done") == total;
}

/* 0: all done */
static int watch(void)
{
	int64_t shown = 0;
	bool all = false;

	while (!told_to_stop && !all && wall_ms() - began_ms < PATIENCE_MS) {
		json_t *overview = ask();

		all = complete(overview);
		if (overview && screen.terminal) {
			draw_frame(overview);
		} else if (overview && (all || wall_ms() - shown >= LINE_MS)) {
			print_line(overview);
			shown = wall_ms();
		}
		json_decref(overview);
		if (!all)
			pause_ms(FRAME_MS);
	}
	return !all;
}

int main(int argc, char **argv)
{
	struct sigaction act = { .sa_handler = stop };
	const char *term = getenv("TERM"), *none = getenv("NO_COLOR");
	int rc;

	if (argc != 4) {
		fputs("usage: view SEATS AGENTS BEGAN\n", stderr);
		return 2;
	}
	mcp_sessions = argv[1];
	agents = (int)strtol(argv[2], NULL, 10);
	began_ms = strtoll(argv[3], NULL, 10) / 1000;
	setlocale(LC_CTYPE, "");
	screen.terminal = isatty(STDOUT_FILENO) && term && strcmp(term, "dumb");
	screen.color = !none || !*none;
	screen.blocks = !strcmp(nl_langinfo(CODESET), "UTF-8");
	sigaction(SIGTERM, &act, NULL);
	sigaction(SIGINT, &act, NULL);
	if (screen.terminal)
		fputs("\033[?25l\033[?7l", stdout); /* hides the cursor and cuts long lines */
	rc = watch();
	if (screen.terminal)
		fputs("\033[?25h\033[?7h", stdout);
	return rc;
}
