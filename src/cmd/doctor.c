/*
 * pawl doctor: checks the settings, the queue and this machine's state files, and says how to
 * repair each problem. Without --fix it changes nothing; --fix repairs only what it has listed.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/os.h"
#include "base/text.h"
#include "base/when.h"
#include "cmd/cmd.h"
#include "core/role.h"
#include "queue/remote_queue.h"

struct doctor_args {
	struct args args;
	int64_t fix, yes;
};

static const struct param params[] = {
	LOCAL(doctor, fix, "fix", P_FLAG,
	      .help = "make the repairs that pawl doctor lists, after a backup"),
	LOCAL(doctor, yes, "yes", P_FLAG, .letter = 'y',
	      .help = "with --fix: repair without asking"),
	{ 0 }
};

static enum result doctor_run(struct session *s, struct args *args, struct reply *out);
static void doctor_show(const struct reply *r, struct view *v);

const struct command cmd_doctor = {
	.name = "doctor",
	.group = "setup",
	.summary = "check the queue and this machine, and say how to repair problems",
	.detail =
		"Checks the settings, the file system, permissions, the store's version, schema and integrity, and the "
		"clock. It also finds scratch queues of a killed torture and stale files. It changes nothing without --fix. "
		"The exit code is 40 if a check fails. --fix makes the repairs that it lists: wrong counts, links, indexes and "
		"ids, texts without a task, stale locks of refs and stale files. It asks first, unless you give --yes, takes "
		"the lock @maintenance and saves a backup. It moves records that it cannot repair to a file and names that "
		"file. Nothing foreign is touched.",
	.example = "pawl doctor\n"
		   "pawl doctor --fix\n"
		   "pawl doctor --fix --yes",
	.see = "config list, lock cleanup, backup",
	.params = params,
	.args_size = sizeof(struct doctor_args),
	.flags = C_IDEMPOTENT | C_LOCAL | C_REPORT,
	.fails = FAILS(CONFLICT),
	.run = doctor_run,
	.show = doctor_show,
};

#define DAY_MS INT64_C(86400000)
#define FIND_MS 15000
#define CLOCK_MS 5000 /* report two clocks only if they differ by more than this */

static const char fixes[] = CHECK_REPAIRS;

void doctor_note(void *ctx, enum check_level level, const char *what, struct str text,
		 struct str fix)
{
	static const char *const levels[] = { "ok", "note", "bad" };
	struct examination *x = ctx;
	json_t *o = json_object();

	json_object_set_new(o, "check", json_string(what));
	json_object_set_new(o, "level", json_string(levels[level]));
	json_object_set_new(o, "text", json_str(text));
	if (str_cut_prefix(&fix, str_c(fixes))) {
		json_object_set_new(o, "fix", json_string("pawl doctor --fix"));
		json_object_set_new(o, "repair", json_str(fix));
		x->repairs++;
	} else if (fix.n) {
		json_object_set_new(o, "fix", json_str(fix));
	}
	json_array_append_new(x->findings, o);
	x->clock |= !strcmp(what, "clock");
	x->bad += level == CHECK_BAD;
}

/* --- state files --------------------------------------------------------------------------------- */

/* A running call holds a kernel lock on its file. */
static bool in_use(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	bool used;

	if (fd < 0)
		return errno != ENOENT;
	used = flock(fd, LOCK_EX | LOCK_NB) < 0;
	close(fd);
	return used;
}

/* Has the token's lock certainly ended? */
static bool lock_is_over(struct examination *x, struct str task)
{
	struct request rq = { .op = OP_LOCK_STATUS };
	struct answer ans = { 0 };

	if (!x->s->client.conn.queue || id_fault(task))
		return false;
	GIVE(&rq, id, task);
	queue_call(x->s->client.conn.queue, &rq, &ans, x->s->arena);
	if (ans.code == NOT_FOUND)
		return true;
	return ans.code == SUCCESS && ans.task &&
	       (!ans.task->lock.holder.n || ans.task->lock.expires_at <= ans.now);
}

/* Removes the file only if it has not changed since the check, because a claim may have replaced
 * it. */
static bool take_away(const struct key_file *f)
{
	struct stat st;

	if (lstat(f->path, &st) < 0)
		return false;
	if ((int64_t)st.st_mtim.tv_sec * 1000 + st.st_mtim.tv_nsec / 1000000 != f->modified)
		return false;
	return unlink(f->path) == 0;
}

static void check_file(void *ctx, const struct key_file *f)
{
	struct examination *x = ctx;

	if (f->pending) {
		if (os_wall_ms() - f->modified < DAY_MS || in_use(f->path))
			return;
	} else if (!keyring_is_ours(&x->s->client.keyring, f)) {
		return; /* to check it, doctor would have to open that queue */
	} else if (!lock_is_over(x, f->task)) {
		return;
	}
	x->stale++;
	if (x->fix && take_away(f))
		x->removed++;
}

static void check_state(struct examination *x)
{
	struct arena *a = x->s->arena;
	int r;

	client_know_queue(&x->s->client);
	x->stale = x->removed = 0;
	r = keyring_each(&x->s->client.keyring, check_file, x);

	if (r < 0)
		doctor_note(x, CHECK_BAD, "state files",
			    arena_printf(a, "%s: %s", x->s->client.keyring.dir, strerror(-r)),
			    STR("make it a folder that only you can read: chmod 700"));
	else if (!x->stale)
		doctor_note(x, CHECK_OK, "state files", STR("there are no stale ones"), STR(""));
	else if (x->removed == x->stale)
		doctor_note(x, CHECK_OK, "state files",
			    arena_printf(a, "removed %d stale ones", x->removed), STR(""));
	else
		doctor_note(
			x, CHECK_NOTE, "state files",
			arena_printf(
				a,
				"%d stale ones: tokens of locks that have ended, or files of calls that died",
				x->stale - x->removed),
			STR(CHECK_REPAIRS "remove these files"));
}

/* --- scratch queues ------------------------------------------------------------------------------ */

struct names {
	struct arena *arena;
	struct strs list;
};

static void add_name(void *ctx, struct str name)
{
	struct names *n = ctx;

	if (str_starts(name, STR(QUEUE_SCRATCH)))
		n->list = arena_append(n->arena, n->list, arena_str(n->arena, name));
}

/* A killed `pawl torture` cannot remove its scratch queue. */
static void check_scratch(struct examination *x)
{
	const struct client *c = &x->s->client;
	struct arena *a = x->s->arena;
	struct torture_plan plan = { .uri = c->conn.config.uri,
				     .timeout_ms = c->conn.config.opt.timeout_ms,
				     .access = &c->conn.config };
	const struct proof_ops *proof = NULL;
	struct names n = { .arena = a };
	struct answer ans = { 0 };

	if (queue_names(c->conn.queue, add_name, &n, &ans, a) != SUCCESS)
		doctor_note(x, CHECK_BAD, "scratch queues", ans.message, ans.hint);
	else if (n.list.n && !(proof = proof_load(&ans, a)))
		doctor_note(x, CHECK_NOTE, "scratch queues", ans.message, ans.hint);
	for (size_t i = 0; proof && i < n.list.n; i++)
		if (proof->left(&plan, n.list.v[i], a))
			doctor_note(
				x, CHECK_NOTE, "scratch queue",
				arena_printf(a, "a killed `pawl torture` left %.*s behind",
					     STRF(n.list.v[i])),
				arena_printf(
					a, "pawl torture --store %s --remove %.*s",
					arena_cstr(a,
						   store_word(a, uri_shown(a, c->conn.config.uri))),
					STRF(n.list.v[i])));
}

/* --- other checks -------------------------------------------------------------------------------- */

static void check_clock(struct examination *x)
{
	struct arena *a = x->s->arena;
	int64_t apart = queue_now(x->s->client.conn.queue) - os_wall_ms();

	if (apart < 0)
		apart = -apart;
	if (apart <= CLOCK_MS)
		doctor_note(x, CHECK_OK, "clock",
			    STR("the store and this machine agree on the time"), STR(""));
	else
		doctor_note(
			x, CHECK_NOTE, "clock",
			arena_printf(a,
				     "the store's time and this machine's wall clock differ by %s",
				     arena_cstr(a, duration_text(a, apart))),
			STR("leases follow the store's time and are safe; set the machine's clock (NTP)"));
}

static void check_trust(struct examination *x)
{
	struct arena *a = x->s->arena;
	struct trust t;

	client_check_trust(&x->s->client, &t);
	if (t.state == TRUST_INSIDE && t.config)
		doctor_note(x, CHECK_OK, "trust",
			    arena_printf(a, "the store is inside %s", x->s->client.conn.place.root),
			    STR(""));
	else if (t.state == TRUST_REMOTE)
		doctor_note(x, CHECK_OK, "trust", STR("the store is a remote of your repository"),
			    STR(""));
	else if (t.state == TRUST_GIVEN)
		doctor_note(x, CHECK_OK, "trust",
			    arena_printf(a, "you trusted %s",
					 arena_cstr(a, text_line(a, str_c(t.config)))),
			    STR(""));
	else if (t.state == TRUST_MISSING)
		doctor_note(x,
			    x->s->client.conn.trust.state == TRUST_MISSING ? CHECK_BAD : CHECK_NOTE,
			    "trust",
			    t.agent ? STR("nobody has trusted .pawl/config")
				    : arena_printf(a, "you have not trusted %s",
						   arena_cstr(a, trust_reasons(&t, "; ", a))),
			    trust_advice(&t));
}

/* Checks that the server answers, accepts the token and has this version. false: nothing else can
 * be checked. */
static bool check_server(struct examination *x)
{
	struct arena *a = x->s->arena;
	struct answer ans = { 0 };
	struct frame_facts f;

	if (queue_facts(x->s->client.conn.queue, &f, &ans, a) != SUCCESS) {
		doctor_note(x, CHECK_BAD, "server", ans.message, ans.hint);
		return false;
	}
	doctor_note(x, CHECK_OK, "server",
		    arena_printf(a, "it answers; the token %s has the role %s, for the agent %s",
				 arena_cstr(a, text_line(a, f.token)), role_name((enum role)f.role),
				 arena_cstr(a, text_line(a, f.agents))),
		    STR(""));
	if (!str_is(f.version, PAWL_VERSION))
		doctor_note(x, CHECK_NOTE, "version",
			    arena_printf(a, "the server has version %s, this program " PAWL_VERSION,
					 arena_cstr(a, text_line(a, f.version))),
			    STR("install the same version on both"));
	return true;
}

static void check_queue(struct examination *x)
{
	struct answer ans = { 0 };
	struct client *c = &x->s->client;

	check_trust(x);
	if (c->conn.trust.state == TRUST_MISSING) {
		doctor_note(x, CHECK_NOTE, "queue", STR("not checked: its config is not trusted"),
			    STR("run pawl doctor again after you trust it"));
		return;
	}
	if (client_open(c, STORE_READ, &ans) != SUCCESS) {
		doctor_note(x, CHECK_BAD, "queue", ans.message, ans.hint);
		return;
	}
	doctor_note(
		x, CHECK_OK, "queue",
		arena_printf(x->s->arena, "%s, queue %s",
			     arena_cstr(x->s->arena, uri_shown(x->s->arena, c->conn.config.uri)),
			     arena_cstr(x->s->arena, c->conn.config.opt.queue.n
							     ? c->conn.config.opt.queue
							     : STR("default"))),
		STR(""));
	if (queue_is_remote(c->conn.queue) && !check_server(x)) {
		client_close(c);
		return;
	}
	if (queue_check(c->conn.queue, doctor_note, x, &ans, x->s->arena) != SUCCESS)
		doctor_note(x, CHECK_BAD, "store", ans.message, ans.hint);
	if (!x->clock)
		check_clock(x);
	if (!queue_is_remote(c->conn.queue))
		check_scratch(x);
}

/* --- settings that are not valid ----------------------------------------------------------------- */

/* "FILE:LINE: NAME = 'x': it must be …", "PAWL_NAME in the environment: …" */
static struct str settings_fix(struct examination *x, const struct answer *ans)
{
	const struct settings *set = &x->s->client.conn.settings;
	struct str rest = ans->message, variable, name;
	const char *files[] = { set->queue_file, set->user_file };

	if (ans->hint.n)
		return ans->hint;
	variable = str_cut(&rest, ' ');
	if (str_starts(variable, STR("PAWL_")))
		return arena_printf(x->s->arena, "unset %.*s", STRF(variable));
	for (size_t i = 0; i < 2; i++) {
		if (!files[i] || !str_starts(ans->message, str_c(files[i])))
			continue;
		rest = str_n(ans->message.p + strlen(files[i]), ans->message.n - strlen(files[i]));
		str_cut(&rest, ' ');
		name = str_cut(&rest, ' ');
		if (settings_find(name))
			return arena_printf(x->s->arena, "pawl config unset %.*s%s", STRF(name),
					    i ? " --user" : "");
		return arena_printf(x->s->arena, "edit %s", files[i]);
	}
	return STR("`pawl config list` shows the settings");
}

/* If the settings are invalid, it is uncertain which queue the user means. doctor then checks the
 * folder's own queue. */
static bool find_queue(struct client *c)
{
	const char *file;

	if (!c->conn.place.pawl_dir || c->said.store.n ||
	    settings_text(&c->conn.settings, "store").n)
		return false;
	file = fs_join(c->arena, str_c(c->conn.place.pawl_dir), STR("queue.db"));
	if (!fs_exists(file))
		return false;
	c->conn.config.uri = arena_printf(c->arena, "sqlite:%s", file);
	c->conn.config.opt.queue = c->said.queue.n ? c->said.queue
						   : settings_text(&c->conn.settings, "queue");
	c->conn.config.opt.timeout_ms = FIND_MS;
	c->self.agent = STR("pawl doctor");
	c->self.host = os_hostname(c->arena);
	client_check_trust(c, &c->conn.trust);
	return true;
}

static void check_despite(struct examination *x, const struct answer *ans)
{
	struct client *c = &x->s->client;

	doctor_note(x, CHECK_BAD, "settings", ans->message, settings_fix(x, ans));
	if (ans->code != MISCONFIGURED || !c->conn.settings.values || !find_queue(c)) {
		doctor_note(x, CHECK_NOTE, "queue", STR("not checked: repair the settings first"),
			    STR("run pawl doctor again after that"));
		return;
	}
	check_queue(x);
}

/* --- the command --------------------------------------------------------------------------------- */

static void doctor_examine(struct examination *x)
{
	struct session *s = x->s;
	struct client_options said = s->client.said;
	struct answer ans = { 0 };
	int queue;

	client_close(&s->client);
	x->findings = json_array();
	x->bad = x->repairs = 0;
	x->clock = false;
	if (client_init(&s->client, &said, &ans, s->arena) != SUCCESS) {
		check_despite(x, &ans);
		x->repairs = 0; /* the user may mean another queue: repair nothing */
		return;
	}
	doctor_note(x, CHECK_OK, "settings", STR("every value is valid"), STR(""));
	check_queue(x);
	queue = x->repairs;
	check_state(x);
	doctor_temporary(x);
	x->local = x->repairs - queue;
}

static json_t *repairs_of(const json_t *findings)
{
	json_t *list = json_array(), *f;
	size_t i;

	json_array_foreach(findings, i, f)
		if (json_object_get(f, "repair"))
			json_array_append(list, f);
	return list;
}

static bool doctor_agreed(struct examination *x, bool yes)
{
	struct reply preview = { 0 };
	int said;

	if (yes)
		return true;
	json_object_set_new(reply_more(&preview), "would_repair", repairs_of(x->findings));
	said = x->s->confirm ? x->s->confirm(x->s, &cmd_doctor, &preview) : -1;
	reply_free(&preview);
	return said > 0;
}

static enum result doctor_refuse(struct examination *x, struct reply *out)
{
	run_fail(USAGE,
		 arena_printf(x->s->arena,
			      "pawl doctor --fix would make %d repair%s; nothing was changed",
			      x->repairs, x->repairs == 1 ? "" : "s"),
		 STR("pawl doctor lists them; to make them: pawl doctor --fix --yes"), out);
	json_object_set_new(reply_more(out), "would_repair", repairs_of(x->findings));
	json_decref(x->findings);
	return USAGE;
}

/* Makes the repairs that were listed, then checks everything again. */
static enum result doctor_run_repair(struct examination *x, struct reply *out)
{
	struct repairs did = { 0 };
	struct answer ans = { 0 };
	json_t *more;

	if (x->repairs > x->local && doctor_repair(x->s, &did, &ans) != SUCCESS) {
		json_decref(x->findings);
		return run_answer(&ans, out);
	}
	more = reply_more(out);
	json_object_set_new(more, "repaired", repairs_of(x->findings));
	if (did.backup)
		json_object_set_new(more, "backup", json_str(str_c(did.backup)));
	if (did.n_saved)
		json_object_set_new(more, "saved", json_str(did.saved));
	json_decref(x->findings);
	x->fix = true;
	doctor_examine(x);
	return SUCCESS;
}

static enum result doctor_run(struct session *s, struct args *args, struct reply *out)
{
	const struct doctor_args *a = (const struct doctor_args *)args;
	struct examination x = { .s = s };

	if (a->yes && !a->fix)
		return run_fail(USAGE, STR("--yes belongs to --fix"),
				STR("pawl doctor --fix --yes"), out);
	doctor_examine(&x);
	if (a->fix && x.repairs && !doctor_agreed(&x, a->yes))
		return doctor_refuse(&x, out);
	if (a->fix && x.repairs && doctor_run_repair(&x, out) != SUCCESS)
		return out->ans.code;
	if (x.bad)
		run_fail(MISCONFIGURED,
			 arena_printf(s->arena, "%d problem%s found", x.bad, x.bad == 1 ? "" : "s"),
			 STR("each finding says how to repair it"), out);
	json_object_set_new(reply_more(out), "findings", x.findings);
	return x.bad ? MISCONFIGURED : SUCCESS;
}

static void show_repairs(const json_t *list, const char *title, struct view *v)
{
	const json_t *f;
	size_t i;

	if (!json_array_size(list))
		return;
	view_text(v, BOLD, "%s\n", title);
	json_array_foreach(list, i, f) {
		view_text(v, PLAIN, "  ");
		view_data(v, PLAIN, json_get(f, "check"));
		view_text(v, PLAIN, ": ");
		view_data(v, PLAIN, json_get(f, "text"));
		view_text(v, PLAIN, "\n    ");
		view_data(v, DIM, json_get(f, "repair"));
		view_text(v, PLAIN, "\n");
	}
}

static void show_file(const json_t *o, const char *name, const char *title, struct view *v)
{
	struct str path = json_get(o, name);

	if (!path.n)
		return;
	view_text(v, PLAIN, "%s", title);
	view_data(v, BOLD, path);
	view_text(v, PLAIN, "\n");
}

static void doctor_show(const struct reply *r, struct view *v)
{
	const json_t *list = json_object_get(r->more, "findings"), *f;
	size_t i;

	show_repairs(json_object_get(r->more, "would_repair"),
		     "doctor will save a backup of the queue and then repair:", v);
	if (!v->quiet)
		show_repairs(json_object_get(r->more, "repaired"), "repaired:", v);
	show_file(r->more, "backup", "backup of the queue before the repairs: ", v);
	show_file(r->more, "saved", "records that could not be repaired: ", v);
	json_array_foreach(list, i, f) {
		struct str level = json_get(f, "level"), fix = json_get(f, "fix"),
			   repair = json_get(f, "repair");
		enum paint p = str_is(level, "ok") ? GREEN : str_is(level, "bad") ? RED : YELLOW;

		if (v->quiet && p == GREEN)
			continue;
		view_text(v, p, "%-5s", level.p);
		view_text(v, PLAIN, "%-16s", json_get(f, "check").p);
		view_data(v, PLAIN, json_get(f, "text"));
		view_text(v, PLAIN, "\n");
		if (fix.n) {
			view_text(v, DIM, "%21s", "fix: ");
			view_data(v, PLAIN, fix);
			if (repair.n) {
				view_text(v, PLAIN, " (");
				view_data(v, PLAIN, repair);
				view_text(v, PLAIN, ")");
			}
			view_text(v, PLAIN, "\n");
		}
	}
}
