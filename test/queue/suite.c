#include "suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/os.h"
#include "kit/parts.h"
#include "kit/store_uri.h"
#include "format/task_form.h"
#include "format/answer_form.h"
#include "proof/check/checker.h"

static char uri[600], folder[FOLDER_ROOM];
static unsigned queues;

/* --- time ------------------------------------------------------------------------------------- */

int64_t __wrap_os_wall_ms(void);
int64_t __wrap_os_boot_ms(void);

static int64_t passed_ms, creeping;
static int ours = -1; /* does the store use this machine's clock? -1: not known yet */

int64_t __wrap_os_wall_ms(void)
{
	return 1800000000000 + passed_ms;
}

int64_t __wrap_os_boot_ms(void)
{
	passed_ms += creeping;
	return 5000000 + passed_ms;
}

bool clock_is_ours(void)
{
	return ours > 0;
}

bool is_served(void)
{
	return strncmp(uri, "http", 4) == 0;
}

int64_t tick(void)
{
	if (ours > 0)
		return 60000;
	return is_served() ? 1000 : 100; /* as the settings of test/kit/pawl-serve */
}

void advance(int64_t ms)
{
	if (ours > 0)
		passed_ms += ms;
	else
		usleep((useconds_t)ms * 1000);
}

void creep(bool on)
{
	creeping = on;
}

static void find_clock(struct suite *s)
{
	int64_t before = queue_now(s->q);

	passed_ms += 1000000;
	ours = queue_now(s->q) - before >= 1000000;
}

/* --- opening ---------------------------------------------------------------------------------- */

static struct queue *open_queue(struct suite *s, const char *where, enum store_mode mode)
{
	struct queue_config config = s->config;
	struct queue *q = NULL;
	struct answer ans = { 0 };

	config.uri = str_c(where);
	if (queue_open(&q, &config, mode, &ans, &s->a) != SUCCESS)
		fail_msg("cannot open %s: %.*s", where, STRF(ans.message));
	return q;
}

struct queue *open_faulty(struct suite *s, const char *fault)
{
	return open_queue(
		s,
		arena_printf(&s->a, "fault+%s%sfault=%s", uri, strchr(uri, '?') ? "&" : "?", fault)
			.p,
		STORE_WRITE);
}

void reopen(struct suite *s)
{
	queue_close(s->q);
	s->q = open_queue(s, uri, STORE_WRITE);
}

static void set_policy(struct suite *s)
{
	struct policy *p = &s->config.policy;

	*p = policy_default;
	p->lease_min = 1;
	p->lease = 10 * tick();
	p->lock_ttl = 5 * tick();
}

struct suite *unless_served(void **state, const char *reason)
{
	if (is_served())
		skip_because("not through a server: %s", reason);
	return *state;
}

/* The token that test/kit/pawl-serve has made. */
static enum result bearer(void *ctx, struct str origin, struct str *out, bool *insecure,
			  struct answer *ans, struct arena *a)
{
	const char *text = getenv("PAWL_SERVER_TOKEN");

	(void)ctx, (void)origin, (void)insecure, (void)ans, (void)a;
	*out = str_c(text ? text : "");
	return SUCCESS;
}

int suite_setup(void **state)
{
	struct suite *s = calloc(1, sizeof(*s));

	/* a server creates only such queues for its callers */
	snprintf(s->name, sizeof(s->name), "%s-%d-%u",
		 is_served() ? QUEUE_SCRATCH "queue" : "queue", (int)getpid(), ++queues);
	s->config = (struct queue_config){ .opt.queue = str_c(s->name),
					   .opt.timeout_ms = 20000,
					   .opt.relaxed = true,
					   .opt.wall = __wrap_os_wall_ms,
					   .opt.boot = __wrap_os_boot_ms,
					   .opt.own_time = true,
					   .opt.who = STR("queue suite"),
					   .bearer = bearer };
	*state = s;
	s->config.policy = policy_default;
	s->q = open_queue(s, uri, STORE_CREATE);
	if (ours < 0)
		find_clock(s);
	set_policy(s);
	reopen(s);
	return 0;
}

/* Whatever the test did, the log must not look as if somebody had changed it. */
static void audit(struct suite *s)
{
	struct audit_plan plan = { .queue = s->q };
	struct audit_report found;
	struct answer ans = { 0 };

	if (audit_queue(&plan, &found, &ans, &s->a) != SUCCESS)
		fail_msg("audit: %.*s", STRF(ans.message));
	for (size_t i = 0; i < found.n_findings; i++)
		print_error("audit: %s: %.*s: %.*s\n", audit_kind_name(found.findings[i].kind),
			    STRF(found.findings[i].task), STRF(found.findings[i].text));
	if (found.violations)
		fail_msg("the audit finds %lld violations", (long long)found.violations);
}

int suite_teardown(void **state)
{
	struct suite *s = *state;
	struct answer ans = { 0 };

	audit(s);
	if (is_served()) /* which has a limit of open queues */
		assert_int_equal(queue_discard(s->q, &ans, &s->a), SUCCESS);
	queue_close(s->q);
	arena_free(&s->a);
	free(s);
	return 0;
}

/* --- calls as text ---------------------------------------------------------------------------- */

static enum op op_find(struct str name)
{
	for (int op = OP_NONE + 1; op < OP_END; op++)
		if (str_eq_nocase(name, str_c(op_name((enum op)op))))
			return (enum op)op;
	fail_msg("there is no operation %.*s", STRF(name));
	return OP_NONE;
}

static int64_t status_set(struct str list)
{
	int64_t set = 0;

	while (list.n)
		set |= STATUS_BIT(status_parse(str_cut(&list, ',')));
	return set;
}

static int64_t number(struct suite *s, enum arg a, struct str text)
{
	int64_t n = 0, from = 0, unit = 1;

	if (a == ARG_status || a == ARG_statuses || a == ARG_class_rank)
		return a == ARG_status     ? (int64_t)status_parse(text)
		       : a == ARG_statuses ? status_set(text)
					   : (int64_t)class_parse(text);
	if (str_starts(text, STR("+"))) {
		from = queue_now(s->q);
		text = str_n(text.p + 1, text.n - 1);
	}
	if (str_ends(text, STR("t"))) {
		unit = tick();
		text.n--;
	}
	if (!str_to_i64(text, &n))
		fail_msg("%s=%.*s is no number", arg_name(a), STRF(text));
	return from + n * unit;
}

static void give(struct suite *s, struct request *rq, struct str name, struct str value)
{
	for (int i = 0; i < ARG_END; i++) {
		void *p = arg_at(rq, (enum arg)i);

		if (!str_is(name, arg_name((enum arg)i)))
			continue;
		rq->has |= UINT64_C(1) << i;
		if (arg_kind((enum arg)i) == ARG_STR)
			*(struct str *)p = value;
		else if (arg_kind((enum arg)i) == ARG_INT)
			*(int64_t *)p = number(s, (enum arg)i, value);
		else
			while (value.n)
				*(struct strs *)p = arena_append(&s->a, *(struct strs *)p,
								 str_cut(&value, ','));
		return;
	}
	fail_msg("there is no argument %.*s", STRF(name));
}

struct request parse(struct suite *s, const char *text)
{
	struct str rest = arena_str(&s->a, str_c(text));
	struct request rq = { .op = op_find(str_cut(&rest, ' ')) };

	GIVE(&rq, agent, STR("ann"));
	while (rest.n) {
		struct str word = str_cut(&rest, ' '), name = str_cut(&word, '=');

		if (name.n)
			give(s, &rq, name, word);
	}
	if (rq.op == OP_CREATE && !HAS(&rq, title))
		GIVE(&rq, title, STR("a task"));
	return rq;
}

static struct answer *run(struct suite *s, struct queue *q, const char *text)
{
	struct answer *ans = arena_new(&s->a, struct answer);
	struct request rq = parse(s, text);

	queue_call(q, &rq, ans, &s->a);
	return ans;
}

#define FORMAT(text)                                                                    \
	char text[1000];                                                                \
	va_list args;                                                                   \
	va_start(args, fmt);                                                            \
	assert_in_range(vsnprintf(text, sizeof(text), fmt, args), 1, sizeof(text) - 1); \
	va_end(args)

struct answer *call(struct suite *s, const char *fmt, ...)
{
	FORMAT(text);
	return run(s, s->q, text);
}

struct answer *call_on(struct suite *s, struct queue *q, const char *fmt, ...)
{
	FORMAT(text);
	return run(s, q, text);
}

struct answer *ok(struct suite *s, const char *fmt, ...)
{
	struct answer *ans;

	FORMAT(text);
	ans = run(s, s->q, text);
	if (ans->code != SUCCESS)
		fail_msg("%s: %s: %.*s", text, result_name(ans->code), STRF(ans->message));
	return ans;
}

struct answer *refused(struct suite *s, enum result code, const char *fmt, ...)
{
	struct str before = dump(s);
	struct answer *ans;

	FORMAT(text);
	ans = run(s, s->q, text);
	if (ans->code != code)
		fail_msg("%s: %s (%.*s), not %s", text, result_name(ans->code), STRF(ans->message),
			 result_name(code));
	if (!ans->message.n)
		fail_msg("%s: %s without a word", text, result_name(code));
	same_dump(before, dump(s), text);
	return ans;
}

struct task *show(struct suite *s, const char *id)
{
	return ok(s, "show id=%s", id)->task;
}

struct task *expect_status(struct suite *s, const char *id, enum status status)
{
	struct task *t = show(s, id);

	if (t->status != (int64_t)status)
		fail_msg("%s is %s, not %s", id, status_name(t->status), status_name(status));
	return t;
}

static void add_word(struct buf *b, struct str word)
{
	if (b->n)
		buf_addc(b, ' ');
	buf_adds(b, word);
}

const char *ids(struct suite *s, const struct answer *ans)
{
	struct buf b = BUF_MAX(1 << 20);
	const char *out;

	for (size_t i = 0; i < ans->n_tasks; i++)
		add_word(&b, ans->tasks[i].id);
	for (size_t i = 0; i < ans->n_candidates; i++)
		if (ans->candidates[i].eligible)
			add_word(&b, ans->candidates[i].id);
	out = arena_cstr(&s->a, buf_str(&b));
	buf_free(&b);
	return out;
}

/* --- the whole queue -------------------------------------------------------------------------- */

static void dump_read(struct suite *s, struct buf *b, const char *text)
{
	struct answer *ans = run(s, s->q, text);

	if (ans->code != SUCCESS)
		fail_msg("%s: %.*s", text, STRF(ans->message));
	ans->now = 0;
	answer_pack(ans, b);
}

struct str dump(struct suite *s)
{
	struct buf b = BUF_MAX(64 << 20);
	struct str out;

	dump_read(s, &b, "list");
	dump_read(s, &b, "log");
	dump_read(s, &b, "locks");
	dump_read(s, &b, "overview");
	dump_read(s, &b, "id_peek");
	dump_read(s, &b, "typed");
	dump_read(s, &b, "emergency");
	out = arena_str(&s->a, buf_str(&b));
	buf_free(&b);
	return out;
}

void same_dump(struct str before, struct str after, const char *what)
{
	if (!str_eq(before, after))
		fail_msg("%s: it was refused, but the queue is not what it was", what);
}

int count_events(struct suite *s, const char *id, const char *name)
{
	struct answer *ans = *id ? ok(s, "log id=%s", id) : ok(s, "log");
	int n = 0;

	for (size_t i = 0; i < ans->n_events; i++)
		n += str_is(ans->events[i].name, name);
	return n;
}

/* --- the program ------------------------------------------------------------------------------ */

static const struct part parts[] = {
	{ "create", create_tests },       { "link", link_tests },
	{ "remove", remove_tests },       { "lease", lease_tests },
	{ "repeat", repeat_tests },       { "lost", lost_tests },
	{ "read", read_tests },           { "selection", selection_tests },
	{ "typed", typed_tests },         { "operators", operator_tests },
	{ "prospects", prospects_tests }, { "can", can_tests },
	{ "undo", undo_tests },
};

int main(int argc, char **argv)
{
	(void)argc;
	store_uri(uri, sizeof(uri), folder, "mem:queue");
	print_message("store: %s\n", uri);
	return parts_run(parts, sizeof(parts) / sizeof(*parts), argv + 1, folder);
}
