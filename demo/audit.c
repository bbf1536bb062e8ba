/*
 * audit DIR KILLED MICROSECONDS: do the records agree? Compares the answers that the agents got
 * (DIR/ledger, DIR/created) with the queue's log (DIR/log.json) and its content (DIR/list.json).
 * Prints the table; ends with 0 only if everything adds up.
 *
 * "Claimed twice" is any of: two grants of one task with one fence, in the ledgers or in the log; a
 * fence that did not grow; a claim in the log before the previous one had ended; a grant whose
 * answer came while another agent surely held a live lock, by its own clock; two completions of one
 * task.
 *
 * "Lost" is any of: a task whose creation was acknowledged and that does not exist; an acknowledged
 * grant, ending, or lock that a heartbeat renewed, if the log lacks it; an acknowledged completion
 * of a task that is not Done.
 */
#include <dirent.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LEASE_US 2000000 /* as demo/run sets it */

struct grant {
	char task[40], agent[256];
	int64_t fence;
	int64_t came;      /* the agent held it from here at the latest */
	int64_t sure;      /* until here at the least */
	char ended_by[20]; /* the acknowledged ending; empty: none */
};

static struct grant *grants;
static size_t n_grants, room;
static json_t *events, *tasks;
static long twice, lost, created, beats;

static void die(const char *what, const char *path)
{
	fprintf(stderr, "audit: %s %s\n", what, path);
	exit(1);
}

static void accuse(long *counter, const char *what, const char *task, int64_t fence)
{
	++*counter;
	fprintf(stderr, "audit: %s: %s, fence %" PRId64 "\n", what, task, fence);
}

/* --- reading ------------------------------------------------------------------------------------- */

static json_t *load(const char *dir, const char *name, const char *key)
{
	char path[4096];
	json_t *o, *list;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	o = json_load_file(path, 0, NULL);
	list = json_incref(json_object_get(o, key));
	json_decref(o);
	if (!json_is_array(list))
		die("cannot read", path);
	return list;
}

static struct grant *grant_add(void)
{
	if (n_grants == room) {
		room = room ? room * 2 : 256;
		grants = realloc(grants, room * sizeof(*grants));
		if (!grants)
			die("no memory for", "grants");
	}
	grants[n_grants] = (struct grant){ 0 };
	return &grants[n_grants++];
}

/* The latest grant of this ledger, which begins at `first`. */
static struct grant *grant_of(size_t first, const char *task, int64_t fence)
{
	for (size_t i = n_grants; i > first; i--)
		if (grants[i - 1].fence == fence && !strcmp(grants[i - 1].task, task))
			return &grants[i - 1];
	return NULL;
}

static void read_line(const char *agent, size_t first, const char *line)
{
	char word[8], task[40], third[20];
	struct grant *g;
	int64_t fence, at, sent;

	if (sscanf(line, "grant %39s %" SCNd64 " %" SCNd64 " %" SCNd64, task, &fence, &sent, &at) ==
	    4) {
		g = grant_add();
		snprintf(g->task, sizeof(g->task), "%s", task);
		snprintf(g->agent, sizeof(g->agent), "%s", agent);
		g->fence = fence;
		g->came = at;
		g->sure = sent + LEASE_US;
		return;
	}
	if (sscanf(line, "%7s %39s %" SCNd64 " %19s %" SCNd64, word, task, &fence, third, &at) != 5)
		return; /* its writer was killed */
	g = grant_of(first, task, fence);
	if (!g) {
		accuse(&lost, "an answer about a lock that was never granted", task, fence);
	} else if (!strcmp(word, "beat")) {
		g->sure = strtoll(third, NULL, 10) + LEASE_US;
		beats++;
	} else if (!strcmp(word, "end")) {
		g->sure = at < g->sure ? at : g->sure;
	} else if (!strcmp(word, "ack")) {
		snprintf(g->ended_by, sizeof(g->ended_by), "%s", third);
	}
}

static void read_ledger(const char *dir, const char *agent)
{
	size_t first = n_grants;
	char path[4096], line[200];
	FILE *in;

	snprintf(path, sizeof(path), "%s/ledger/%s", dir, agent);
	in = fopen(path, "re");
	if (!in)
		die("cannot read", path);
	while (fgets(line, sizeof(line), in))
		read_line(agent, first, line);
	fclose(in);
}

static void read_ledgers(const char *dir)
{
	char path[4096];
	struct dirent *e;
	DIR *d;

	snprintf(path, sizeof(path), "%s/ledger", dir);
	d = opendir(path);
	if (!d)
		die("cannot read", path);
	while ((e = readdir(d)))
		if (e->d_name[0] != '.')
			read_ledger(dir, e->d_name);
	closedir(d);
}

static const char *text(const json_t *o, const char *key)
{
	const char *s = json_string_value(json_object_get(o, key));

	return s ? s : "";
}

static const json_t *task_find(const char *id)
{
	const json_t *t;
	size_t i;

	json_array_foreach(tasks, i, t)
		if (!strcmp(text(t, "id"), id))
			return t;
	return NULL;
}

static bool in_log(const char *event, const char *task, const char *agent, int64_t fence)
{
	const json_t *e;
	size_t i;

	json_array_foreach(events, i, e)
		if (!strcmp(text(e, "event"), event) && !strcmp(text(e, "task"), task) &&
		    !strcmp(text(e, "agent"), agent) &&
		    json_integer_value(json_object_get(e, "fence")) == fence)
			return true;
	return false;
}

/* --- the agents' answers -------------------------------------------------------------------------- */

static int by_task_and_fence(const void *a, const void *b)
{
	const struct grant *x = a, *y = b;
	int r = strcmp(x->task, y->task);

	return r ? r : (x->fence > y->fence) - (x->fence < y->fence);
}

static const char *event_of(const char *command)
{
	static const char *const names[][2] = { { "block", "blocked" },
						{ "fail", "failed" },
						{ "release", "released" } };

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (!strcmp(command, names[i][0]))
			return names[i][1];
	return command; /* done, review */
}

static void check_grant(const struct grant *g)
{
	const json_t *task = task_find(g->task);

	if (!in_log("claimed", g->task, g->agent, g->fence))
		accuse(&lost, "a grant that the log does not know", g->task, g->fence);
	if (g->ended_by[0] && !in_log(event_of(g->ended_by), g->task, g->agent, g->fence))
		accuse(&lost, "an ending that the log does not know", g->task, g->fence);
	if (!strcmp(g->ended_by, "done") && strcmp(text(task, "status"), "Done"))
		accuse(&lost, "a completion that is not there", g->task, g->fence);
}

static void check_pair(const struct grant *a, const struct grant *b)
{
	if (strcmp(a->task, b->task))
		return;
	if (a->fence == b->fence)
		accuse(&twice, "granted twice with one fence", b->task, b->fence);
	else if (b->came < a->sure)
		accuse(&twice, "granted while another held it", b->task, b->fence);
	if (!strcmp(a->ended_by, "done"))
		accuse(&twice, "granted after it was done", b->task, b->fence);
}

static void check_ledgers(void)
{
	qsort(grants, n_grants, sizeof(*grants), by_task_and_fence);
	for (size_t i = 0; i < n_grants; i++) {
		check_grant(&grants[i]);
		if (i)
			check_pair(&grants[i - 1], &grants[i]);
	}
}

static void check_created(const char *dir)
{
	char path[4096], line[100];
	FILE *in;

	snprintf(path, sizeof(path), "%s/created", dir);
	in = fopen(path, "re");
	if (!in)
		die("cannot read", path);
	while (fgets(line, sizeof(line), in)) {
		line[strcspn(line, "\n")] = '\0';
		created++;
		if (!task_find(line))
			accuse(&lost, "a task that is not there", line, 0);
	}
	fclose(in);
}

/* --- the queue's log ------------------------------------------------------------------------------- */

struct story {
	long claims, picked_up, done;
};

static void check_story(const char *id, struct story *s)
{
	bool held = false, left = false, done = false;
	int64_t fence = 0;
	const json_t *e;
	size_t i;

	json_array_foreach(events, i, e) {
		const char *name = text(e, "event");
		int64_t at = json_integer_value(json_object_get(e, "fence"));

		if (strcmp(text(e, "task"), id))
			continue;
		if (!strcmp(name, "claimed")) {
			s->claims++;
			s->picked_up += left;
			if (held || done || at <= fence)
				accuse(&twice, "claimed in the log while it was held", id, at);
			held = true;
			left = false;
			fence = at;
		} else if (!strcmp(name, "done") || !strcmp(name, "approved")) {
			if (done || at != fence)
				accuse(&twice, "completed twice", id, at);
			held = false;
			done = true;
		} else if (!strcmp(name, "abandoned")) {
			held = false;
			left = true;
		} else if (strcmp(name, "heartbeat") && strcmp(name, "comment")) {
			held = false;
		}
	}
}

static struct story check_log(void)
{
	struct story s = { 0 };
	const json_t *t;
	size_t i;

	json_array_foreach(tasks, i, t) {
		check_story(text(t, "id"), &s);
		s.done += !strcmp(text(t, "status"), "Done");
	}
	return s;
}

/* --- the table ------------------------------------------------------------------------------------- */

static void row(const char *what, long n, const char *more)
{
	printf("  %-34s %6ld%s\n", what, n, more);
}

int main(int argc, char **argv)
{
	struct story s;
	double seconds;
	char rate[60];
	bool good;

	if (argc != 4) {
		fputs("usage: audit DIR KILLED MICROSECONDS\n", stderr);
		return 2;
	}
	events = load(argv[1], "log.json", "events");
	tasks = load(argv[1], "list.json", "tasks");
	read_ledgers(argv[1]);
	check_created(argv[1]);
	check_ledgers();
	s = check_log();
	seconds = (double)strtoll(argv[3], NULL, 10) / 1e6;
	snprintf(rate, sizeof(rate), "   %.1f a second", (double)s.claims / seconds);
	good = !twice && !lost && s.done == created && (long)json_array_size(tasks) == created;
	puts("");
	row("created", created, "");
	row("done", s.done, "");
	row("claimed twice", twice, "");
	row("lost", lost, "");
	row("agents killed with -9", strtol(argv[2], NULL, 10), "");
	row("abandoned and picked up again", s.picked_up, "");
	row("claims", s.claims, rate);
	row("  whose agent died unanswered", s.claims - (long)n_grants, "");
	row("heartbeats", beats, "");
	printf("\n  %s, in %.1f s\n", good ? "It all adds up" : "IT DOES NOT ADD UP", seconds);
	json_decref(events);
	json_decref(tasks);
	free(grants);
	return !good;
}
