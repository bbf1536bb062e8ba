/*
 * pawl guard --receive: the check on the side of a git server. As a repository's pre-receive hook it refuses a push whose
 * work names a stale fence. Invariant: if a fence cannot be checked (the store does not answer, a trailer cannot be read,
 * git fails), the push is refused. It only reads, and git takes all refs of a push or none.
 *
 * It reads the messages itself. git sees a trailer only in the last paragraph, and settings such as trailer.* rename it,
 * but a ghost's fence must count wherever a line of the message names it.
 */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/os.h"
#include "base/text.h"
#include "cmd/cmd.h"
#include "cmd/command.h"
#include "core/lease.h"

#define LINE_MOST 4096    /* bytes in a line of the hook's input, or of git's output */
#define NAMED_MOST 100000 /* tasks that one push may name */
#define TOLD_MOST 10      /* refusals that are told */
#define BRANCHES "refs/heads/pawl/"
#define TRAILER "Pawl-Task:"
#define TOPS_MOST 1000 /* commits with a task's newest fence */

/* The newest fence of a task that a ref's new commits name. */
struct named {
	struct str id, ref;
	int64_t fence;
	bool older;  /* other commits name an older fence */
	bool of_ref; /* the ref's name has the newest fence, so it counts for all its commits */
	struct strs tops; /* the commits with the newest fence */
};

struct receive {
	struct session *s;
	struct reply *out;
	struct named *named;
	size_t n, of_ref; /* the current ref's begin at of_ref */
	size_t refused;
	enum result code; /* of the first refusal */
	struct str ref, commit;
	struct buf trailer; /* the value that is being read, with the lines that continue it */
	bool in_trailer;
	struct named *below; /* its older fences must be below `tops`; NULL: names are collected */
	bool has_head;
	char *head; /* the commit that the default branch has; NULL: none yet */
};

static void receive_refuse(struct receive *r, enum result code, struct str ref, struct str why)
{
	struct arena *a = r->s->arena;
	struct str text = arena_printf(a, "%s: %.*s", arena_cstr(a, text_line(a, ref)), STRF(why));

	if (!r->refused++) {
		r->code = code;
		(void)run_fail(
			code, text,
			code == LOST_LOCK
				? STR("git took nothing of this push; if the work is still yours, claim the task "
				      "again and push with its new fence")
				: STR("git took nothing of this push, because its fences could not be checked"),
			r->out);
	} else if (r->refused <= TOLD_MOST) {
		reply_warn(r->out, text, a);
	}
}

/* --- the fences that a push names ----------------------------------------------------------------- */

static struct named *receive_named(struct receive *r, struct str id)
{
	struct arena *a = r->s->arena;

	for (size_t i = r->of_ref; i < r->n; i++)
		if (str_eq_nocase(r->named[i].id, id))
			return &r->named[i];
	if (r->n == NAMED_MOST) {
		receive_refuse(r, USAGE, r->ref, STR("the push names too many tasks"));
		return NULL;
	}
	r->named = arena_grow(a, r->named, r->n, sizeof(*r->named));
	r->named[r->n] = (struct named){ .id = arena_str(a, id), .ref = r->ref };
	return &r->named[r->n++];
}

/* A ref may bring commits of earlier holders, on which the current holder built: only its newest fence is checked. */
static void receive_name(struct receive *r, struct str id, int64_t fence, bool by_commit)
{
	struct arena *a = r->s->arena;
	struct named *n = receive_named(r, id);

	if (!n)
		return;
	n->older |= n->fence && fence != n->fence;
	if (fence > n->fence) {
		n->fence = fence;
		n->of_ref = false;
		n->tops.n = 0;
	}
	if (fence < n->fence)
		return;
	n->of_ref |= !by_commit;
	if (!by_commit || n->tops.n == TOPS_MOST)
		return;
	n->tops.v = arena_grow(a, n->tops.v, n->tops.n, sizeof(struct str));
	n->tops.v[n->tops.n++] = r->commit;
}

/* The commit has no commit with the newest fence above it. */
static void receive_uncovered(struct receive *r, struct str id, int64_t fence)
{
	const struct named *n = r->below;

	if (!str_eq_nocase(n->id, id) || fence >= n->fence)
		return;
	receive_refuse(
		r, LOST_LOCK, r->ref,
		arena_printf(
			r->s->arena,
			"commit %.12s has the stale fence %lld of %.*s, and no commit with fence %lld builds on it",
			arena_cstr(r->s->arena, r->commit), (long long)fence, STRF(n->id),
			(long long)n->fence));
}

/* "ID FENCE", in any amount of white space. */
static bool receive_read_fence(struct str text, char sep, struct str *id, int64_t *fence)
{
	*id = str_cut(&text, sep);
	text = str_trim(text);
	return !id_fault(*id) && text.n && isdigit((unsigned char)text.p[0]) &&
	       str_to_i64(text, fence) && *fence > 0;
}

static void receive_trailer(struct receive *r, struct str text)
{
	struct arena *a = r->s->arena;
	int64_t fence;
	struct str id;
	bool good = receive_read_fence(str_trim(text), ' ', &id, &fence);

	if (good && r->below)
		receive_uncovered(r, id, fence);
	else if (good)
		receive_name(r, id, fence, true);
	else if (!r->below)
		receive_refuse(r, USAGE, r->ref,
			       arena_printf(a,
					    "commit %.12s has the trailer \"" TRAILER
					    " %s\", which is not: ID FENCE",
					    arena_cstr(a, r->commit),
					    arena_cstr(a, text_line(a, str_trim(text)))));
}

static void receive_trailer_ends(struct receive *r)
{
	if (r->in_trailer)
		receive_trailer(r, buf_str(&r->trailer));
	r->in_trailer = false;
}

/* Is this line of a message "Pawl-Task: VALUE"? Then leaves the value in *line. */
static bool receive_is_trailer(struct str *line)
{
	struct str rest = *line, name = str_cut(&rest, ':');

	if (name.n == line->n || isspace((unsigned char)line->p[0]) ||
	    !str_eq_nocase(str_trim(name), STR("Pawl-Task")))
		return false;
	*line = rest;
	return true;
}

/* One line of git's list: "c COMMIT", or a space and a line of that commit's message. */
static void receive_line(struct receive *r, struct str line)
{
	bool more = str_cut_prefix(&line, STR(" "));

	if (more && r->in_trailer && line.n && (line.p[0] == ' ' || line.p[0] == '\t')) {
		buf_adds(&r->trailer, line);
		return;
	}
	receive_trailer_ends(r);
	if (!more && str_cut_prefix(&line, STR("c "))) {
		r->commit = arena_str(r->s->arena, line);
	} else if (more && receive_is_trailer(&line)) {
		r->in_trailer = true;
		r->trailer.n = 0;
		buf_adds(&r->trailer, line);
	}
}

/* --- git ------------------------------------------------------------------------------------------- */

/* A replacement ref could hide a commit behind another one. The other settings could change the list. */
static int receive_git_start(char *const argv[], pid_t *pid, FILE **from)
{
	posix_spawn_file_actions_t files;
	int ends[2], rc = os_pipe(ends);

	if (rc)
		return rc;
	if (setenv("GIT_NO_REPLACE_OBJECTS", "1", 1))
		rc = errno;
	posix_spawn_file_actions_init(&files);
	posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_adddup2(&files, ends[1], 1);
	rc = rc ? rc : posix_spawnp(pid, argv[0], &files, NULL, argv, environ);
	posix_spawn_file_actions_destroy(&files);
	close(ends[1]);
	*from = rc ? NULL : fdopen(ends[0], "r");
	if (!*from)
		close(ends[0]);
	return *from ? 0 : rc ? -rc : -ENOMEM;
}

/* Reads a line and drops what is beyond LINE_MOST: a message may contain any line. false: the end. */
static bool receive_read_line(FILE *from, char line[LINE_MOST], struct str *out)
{
	size_t n = 0;
	int c;

	while ((c = getc(from)) != EOF && c != '\n')
		if (n < LINE_MOST)
			line[n++] = (char)c;
	*out = str_n(line, n);
	return c != EOF || n;
}

/* Calls `each` with every line that git prints. false: git failed. */
static bool receive_git(struct receive *r, char *const argv[],
			void (*each)(struct receive *, struct str))
{
	char line[LINE_MOST];
	struct str s;
	bool whole;
	FILE *from;
	int status;
	pid_t pid;

	if (receive_git_start(argv, &pid, &from))
		return false;
	while (receive_read_line(from, line, &s))
		each(r, s);
	whole = !ferror(from);
	fclose(from);
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return false;
	return whole && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* git's word for: there is no such ref. */
static bool receive_is_zero(struct str hash)
{
	for (size_t i = 0; i < hash.n; i++)
		if (hash.p[i] != '0')
			return false;
	return true;
}

static void receive_take_line(struct receive *r, struct str line)
{
	r->commit = arena_str(r->s->arena, line);
}

/* The commit that the default branch has now. */
static char *receive_head(struct receive *r)
{
	char *argv[] = { "git", "rev-parse", "--quiet", "--verify", "HEAD^{commit}", NULL };

	if (r->has_head)
		return r->head;
	r->has_head = true;
	r->commit = STR("");
	if (receive_git(r, argv, receive_take_line) && r->commit.n)
		r->head = arena_cstr(r->s->arena, r->commit);
	return r->head;
}

/*
 * Reads the messages of the commits that the ref brings. Commits on the default branch were checked when they came there.
 * Those on other branches count again: a late holder may have pushed them before its lease expired, and now wants to
 * move another ref to them. `but`: leave out these commits and those below them.
 */
static bool receive_list(struct receive *r, struct str old, struct str new, struct strs but)
{
	struct arena *a = r->s->arena;
	char **log = arena_array(a, char *, but.n + 12), *head = receive_head(r);
	size_t n = 0;
	bool good;

	log[n++] = "git";
	log[n++] = "-c";
	log[n++] = "log.showSignature=false";
	log[n++] = "log";
	log[n++] = "--encoding=UTF-8";
	log[n++] = "--format=tformat:c %H%n%w(0,1,1)%B%w(0,0,0)";
	log[n++] = arena_cstr(a, new);
	log[n++] = "--not";
	if (head)
		log[n++] = head;
	if (!receive_is_zero(old)) /* else it did not exist */
		log[n++] = arena_cstr(a, old);
	for (size_t i = 0; i < but.n; i++)
		log[n++] = arena_cstr(a, but.v[i]);
	log[n] = "--";
	good = receive_git(r, log, receive_line);
	receive_trailer_ends(r);
	if (!good)
		receive_refuse(r, API_ERROR, r->ref,
			       STR("git could not list the commits that the push brings"));
	return good;
}

/* A ghost may have put its own work beside or above that of the current holder. */
static void receive_below(struct receive *r, struct str old, struct str new)
{
	for (size_t i = r->of_ref; i < r->n; i++) {
		r->below = &r->named[i];
		if (r->below->older && !r->below->of_ref &&
		    !receive_list(r, old, new, r->below->tops))
			break;
	}
	r->below = NULL;
}

static void receive_commits(struct receive *r, struct str old, struct str new)
{
	struct arena *a = r->s->arena;
	char *hash = arena_cstr(a, arena_printf(a, "%.*s^{}", STRF(new)));
	char *type[] = { "git", "cat-file", "-t", hash, NULL };

	if (!receive_git(r, type, receive_take_line)) {
		receive_refuse(r, API_ERROR, r->ref,
			       STR("git could not read what the push brings"));
		return;
	}
	if (!str_is(r->commit, "commit")) /* a tag of a file: nothing in it names a task */
		return;
	if (receive_list(r, old, new, (struct strs){ 0 }))
		receive_below(r, old, new);
}

/* --- the hook's input: "OLD NEW REF" in each line -------------------------------------------------- */

static bool receive_is_hash(struct str s)
{
	for (size_t i = 0; i < s.n; i++)
		if (!isxdigit((unsigned char)s.p[i]))
			return false;
	return s.n == 40 || s.n == 64;
}

static void receive_branch(struct receive *r)
{
	struct str name = r->ref, id;
	int64_t fence;

	if (!str_cut_prefix(&name, STR(BRANCHES)))
		return;
	if (receive_read_fence(name, '/', &id, &fence))
		receive_name(r, id, fence, false);
	else
		receive_refuse(r, USAGE, r->ref,
			       STR("a branch below pawl/ is called pawl/ID/FENCE"));
}

/* A deletion brings no work. Below refs/pawl/ a store of pawl may keep its own records. */
static void receive_ref(struct receive *r, struct str line)
{
	struct str old = str_cut(&line, ' '), new = str_cut(&line, ' ');

	r->ref = arena_str(r->s->arena, line);
	r->of_ref = r->n;
	if (!receive_is_hash(old) || !receive_is_hash(new) || !line.n) {
		receive_refuse(
			r, USAGE, STR("standard input"),
			STR("expected lines \"OLD NEW REF\", as git gives them to a pre-receive hook"));
		return;
	}
	if (receive_is_zero(new) || str_starts(r->ref, STR("refs/pawl/")))
		return;
	r->commit = arena_str(r->s->arena, new);
	receive_branch(r);
	receive_commits(r, old, new);
}

/* --- the check --------------------------------------------------------------------------------------- */

/* Why this fence may not bring work any more. Empty: it is current. */
static struct str receive_stale(const struct task *t, int64_t fence, int64_t now, struct arena *a)
{
	if (fence > t->fence)
		return arena_printf(a, "%.*s has had no fence %lld yet; its newest is %lld",
				    STRF(t->id), (long long)fence, (long long)t->fence);
	if (fence < t->fence)
		return arena_printf(
			a,
			"fence %lld of %.*s is stale; %.*s claimed the task later, with fence %lld",
			(long long)fence, STRF(t->id), STRF(t->last_holder), (long long)t->fence);
	if (lease_live(&t->lock, now) || t->status == REVIEW || t->status == DONE)
		return STR("");
	if (t->lock.token.n || t->lock.holder.n)
		return arena_printf(a, "the lease of %.*s with fence %lld has expired", STRF(t->id),
				    (long long)fence);
	return arena_printf(a, "no agent holds %.*s any more; it is %s", STRF(t->id),
			    status_name(t->status));
}

static void receive_check(struct receive *r, const struct named *n)
{
	struct request rq = { .op = OP_SHOW };
	struct answer ans = { 0 };
	struct str why;

	GIVE(&rq, id, n->id);
	client_call(&r->s->client, &rq, &ans);
	if (ans.code == SUCCESS)
		why = receive_stale(ans.task, n->fence, ans.now, r->s->arena);
	else
		why = ans.message;
	if (why.n || ans.code != SUCCESS)
		receive_refuse(r, ans.code == SUCCESS ? LOST_LOCK : ans.code, n->ref, why);
}

enum result guard_receive(struct session *s, struct reply *out)
{
	struct receive r = { .s = s, .out = out, .trailer = BUF_MAX(LINE_MOST) };
	char line[LINE_MOST];

	while (fgets(line, sizeof(line), stdin)) {
		struct str text = str_c(line);

		if (str_ends(text, STR("\n")))
			text.n--;
		receive_ref(&r, text);
	}
	if (ferror(stdin))
		receive_refuse(&r, API_ERROR, STR("standard input"), STR("it could not be read"));
	buf_free(&r.trailer);
	for (size_t i = 0; i < r.n; i++)
		receive_check(&r, &r.named[i]);
	if (r.refused > TOLD_MOST)
		reply_warn(out, arena_printf(s->arena, "%zu more refusals", r.refused - TOLD_MOST),
			   s->arena);
	if (r.refused)
		return r.code;
	json_object_set_new(reply_more(out), "checked", json_integer((json_int_t)r.n));
	return SUCCESS;
}
