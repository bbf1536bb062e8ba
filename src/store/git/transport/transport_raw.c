/* A client of git's protocol, version 0: every server speaks it, and pushes have no other version. A report
 * that is cut off, or does not name every ref, gives PUSH_UNKNOWN: pawl never guesses a push's outcome. */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/os.h"
#include "store/git/transport/transport.h"

#define NET_MS 10000
#define HAVES 256
#define SEND_MAX (256u << 20)

struct git_raw {
	struct git_endpoint endpoint;
	struct arena a; /* holds the strings of `way` */
	struct git_conn conn;
	bool changing;
	bool ready;  /* the refs were read from conn, and it waits for commands */
	bool atomic; /* its receive-pack can move all refs or none */
	struct gate turn;
	bool my_turn;
	git_oid *made; /* the objects that this change has written */
	size_t n_made, room;
};

/* Programs that are still finishing their own work (hooks, garbage collection). pawl does not wait for them. It
 * reaps the ended ones whenever it adds another. */
static struct {
	pthread_mutex_t lock;
	pid_t *pid;
	size_t n, room;
} left = { .lock = PTHREAD_MUTEX_INITIALIZER };

int64_t git_net_ms(const struct git *s)
{
	if (s->base.env.opt.net_ms)
		return s->base.env.opt.net_ms;
	return s->base.env.opt.timeout_ms > NET_MS ? s->base.env.opt.timeout_ms : NET_MS;
}

/* --- programs that are still running ------------------------------------------------------------ */

static void git_raw_leave(pid_t pid)
{
	size_t kept = 0;

	pthread_mutex_lock(&left.lock);
	for (size_t i = 0; i < left.n; i++)
		if (waitpid(left.pid[i], NULL, WNOHANG) == 0)
			left.pid[kept++] = left.pid[i];
	left.n = kept;
	if (left.n == left.room)
		left.pid = mem_grow(left.pid, (left.room = left.room * 2 + 16) * sizeof(pid));
	left.pid[left.n++] = pid;
	pthread_mutex_unlock(&left.lock);
}

static void hang_up(struct git_conn *c)
{
	pid_t pid = git_conn_close(c);

	if (pid)
		git_raw_leave(pid);
}

/* --- opening ------------------------------------------------------------------------------------ */

static struct str git_raw_setting(git_config *c, const char *name, struct arena *a)
{
	git_buf b = { 0 };
	struct str out = { 0 };

	if (git_config_get_string_buf(&b, c, name) == 0)
		out = arena_str(a, str_c(b.ptr));
	git_buf_dispose(&b);
	return out;
}

bool git_raw_open(struct git *s)
{
	struct git_raw *r = mem_alloc(sizeof(*r));
	struct git_ssh_config conf = { 0 };
	git_config *c = NULL;

	*r = (struct git_raw){ .turn = { .fd = -1 } };
	git_conn_init(&r->conn, 0);
	s->raw = r;
	if (git_repository_config_snapshot(&c, s->repo) == 0) {
		conf = (struct git_ssh_config){ git_raw_setting(c, "core.sshcommand", &r->a),
						git_raw_setting(c, "ssh.variant", &r->a),
						git_raw_setting(c, "core.gitproxy", &r->a) };
		git_config_free(c);
	}
	git_endpoint_find(&r->endpoint, str_c(s->url), &conf, &r->a);
	if (r->endpoint.kind == ACTION_NONE)
		git_raw_close(s);
	return s->raw != NULL;
}

void git_raw_close(struct git *s)
{
	struct git_raw *r = s->raw;

	if (!r)
		return;
	hang_up(&r->conn);
	gate_close(&r->turn);
	arena_free(&r->a);
	free(r->made);
	free(r);
	s->raw = NULL;
}

void git_raw_begin(struct git *s)
{
	struct git_raw *r = s->raw;

	r->my_turn = r->endpoint.kind == CONN_PATH &&
		     git_turns_take(&r->turn, r->endpoint.path, &s->base.env);
	r->changing = true;
	r->n_made = 0;
}

void git_raw_forget(struct git *s)
{
	s->raw->n_made = 0;
}

void git_raw_end(struct git *s)
{
	if (s->raw->my_turn)
		gate_unlock(&s->raw->turn);
	s->raw->my_turn = false;
	hang_up(&s->raw->conn);
	s->raw->changing = s->raw->ready = false;
}

static int git_raw_made(struct git *s, int rc, const git_oid *oid)
{
	struct git_raw *r = s->raw;

	if (rc || !r)
		return rc;
	if (r->n_made == r->room)
		r->made = mem_grow(r->made, (r->room = r->room * 2 + 16) * sizeof(*r->made));
	r->made[r->n_made++] = *oid;
	return 0;
}

int git_object_put(struct git *s, struct str bytes, git_object_t type, git_oid *out)
{
	return git_raw_made(s, git_odb_write(out, s->odb, str_p(bytes), bytes.n, type), out);
}

int git_tree_put(struct git *s, git_treebuilder *t, git_oid *out)
{
	return git_raw_made(s, git_treebuilder_write(out, t), out);
}

/* --- the list of refs --------------------------------------------------------------------------- */

static bool has_word(struct str words, struct str word)
{
	while (words.n)
		if (str_eq(str_cut(&words, ' '), word))
			return true;
	return false;
}

static int git_raw_said(struct git *s, struct git_conn *c, int rc)
{
	return git_unreachable(s, rc == PKT_END ? -EPIPE : rc, git_conn_said(c));
}

static bool read_oid(struct str *line, git_oid *out)
{
	if (line->n < GIT_OID_HEXSZ + 1 || line->p[GIT_OID_HEXSZ] != ' ' ||
	    git_oid_fromstrn(out, line->p, GIT_OID_HEXSZ))
		return false;
	*line = str_n(line->p + GIT_OID_HEXSZ + 1, line->n - GIT_OID_HEXSZ - 1);
	return true;
}

static int take_ref(struct git *s, struct str line, struct git_refs *out, struct arena *a)
{
	struct str text = line, name;
	git_oid oid;

	if (str_cut_prefix(&text, STR("ERR ")))
		return git_unreachable(s, 1, text);
	if (str_starts(line, STR("version ")) || str_starts(line, STR("shallow ")))
		return 0;
	if (!read_oid(&text, &oid))
		return git_unreachable(s, 1, STR("its answer is not git's protocol"));
	name = str_cut(&text, '\0');
	if (text.n)
		s->raw->atomic |= has_word(text, STR("atomic"));
	/* a zero id: the ref was removed while the refs were listed */
	if (str_cut_prefix(&name, str_c(s->prefix)) && !str_ends(name, STR("^{}")) &&
	    git_ours(s, name) && !git_oid_is_zero(&oid))
		git_refs_add(out, name, &oid, a);
	return 0;
}

static int git_raw_dial(struct git *s, const char *service, struct git_conn *c)
{
	int rc = git_endpoint_connect(&s->raw->endpoint, service, git_net_ms(s), c);

	return rc ? git_raw_said(s, c, rc) : 0;
}

/* Reads the list of refs, which a service sends first. */
static int listen_to(struct git *s, struct git_conn *c, struct git_refs *out, struct arena *a)
{
	struct str line;
	int rc;

	*out = (struct git_refs){ 0 };
	while ((rc = git_pkt_read(c, &line)) == PKT_LINE) {
		rc = take_ref(s, line, out, a);
		if (rc)
			return rc;
	}
	if (rc != PKT_FLUSH)
		return git_raw_said(s, c, rc);
	git_refs_sort(out);
	return 0;
}

static int git_raw_hello(struct git *s, const char *service, struct git_conn *c,
			 struct git_refs *out, struct arena *a)
{
	int rc = git_raw_dial(s, service, c);

	return rc ? rc : listen_to(s, c, out, a);
}

/* --- fetching ----------------------------------------------------------------------------------- */

static bool is_seen(const struct git_refs *seen, const struct git_ref *r)
{
	const git_oid *old = git_ref_find(seen, r->name);

	return old && git_oid_equal(old, &r->oid);
}

static void git_raw_ask(const struct git_refs *refs, const struct git_refs *seen, struct buf *out,
			struct arena *a)
{
	const char *words = " ofs-delta no-progress agent=pawl";
	size_t haves = 0;

	for (size_t i = 0; i < refs->n; i++) {
		if (is_seen(seen, &refs->v[i]))
			continue;
		git_pkt_add(out,
			    arena_printf(a, "want %s%s\n", git_hex(a, &refs->v[i].oid).p, words));
		words = "";
	}
	git_pkt_flush(out);
	for (size_t i = 0; i < refs->n && haves < HAVES; i++) {
		const git_oid *old = git_ref_find(seen, refs->v[i].name);

		if (!old || is_seen(seen, &refs->v[i]))
			continue;
		git_pkt_add(out, arena_printf(a, "have %s\n", git_hex(a, old).p));
		haves++;
	}
	if (git_ref_find(seen, GIT_BASE))
		git_pkt_add(out, arena_printf(a, "have %s\n",
					      git_hex(a, git_ref_find(seen, GIT_BASE)).p));
	git_pkt_add(out, STR("done\n"));
}

static int git_raw_fetch(struct git *s, struct git_conn *c, const struct git_refs *refs,
			 const struct git_refs *seen, struct arena *a)
{
	struct buf b = BUF_MAX(SEND_MAX);
	struct str line;
	int rc;

	git_raw_ask(refs, seen, &b, a);
	rc = git_conn_send(c, buf_str(&b));
	buf_free(&b);
	while (rc == 0 && !git_conn_begins(c, STR("PACK"))) {
		rc = git_pkt_read(c, &line);
		if (rc == PKT_LINE && !str_is(line, "NAK") && !str_starts(line, STR("ACK ")))
			return git_unreachable(s, 1, line);
	}
	if (rc)
		return git_raw_said(s, c, rc);
	rc = git_pack_take(s, c);
	if (rc == -EIO)
		return git_fail(s, STORE_IO, "cannot store the fetched objects");
	if (rc == -EBADMSG)
		return git_unreachable(s, 1, STR("the pack that it sent is incomplete"));
	return rc ? git_raw_said(s, c, rc) : 0;
}

static bool all_seen(const struct git_refs *refs, const struct git_refs *seen)
{
	for (size_t i = 0; i < refs->n; i++)
		if (!is_seen(seen, &refs->v[i]))
			return false;
	return true;
}

/* upload-pack sends only objects of refs that it has listed itself, so its list replaces receive-pack's. */
static int fetch_beside(struct git *s, struct git_refs *refs, const struct git_refs *seen,
			struct arena *a)
{
	struct git_conn c;
	int rc = git_raw_hello(s, "upload-pack", &c, refs, a);

	if (rc == 0 && !all_seen(refs, seen))
		rc = git_raw_fetch(s, &c, refs, seen, a);
	hang_up(&c);
	return rc;
}

static void git_raw_note(struct git *s, const struct git_refs *refs, const struct git_refs *seen,
			 struct arena *a)
{
	struct git_move *m = arena_array(a, struct git_move, refs->n + seen->n);
	size_t n = 0;

	for (size_t i = 0; i < refs->n; i++) {
		const git_oid *old = git_ref_find(seen, refs->v[i].name);

		m[n] = (struct git_move){ .name = refs->v[i].name, .to = refs->v[i].oid };
		if (old)
			m[n].old = *old;
		n++;
	}
	for (size_t i = 0; i < seen->n; i++)
		if (!git_ref_find(refs, seen->v[i].name))
			m[n++] = (struct git_move){ .name = seen->v[i].name,
						    .old = seen->v[i].oid };
	git_seen_note(s, m, n);
	git_seen_now(s);
}

int git_raw_list(struct git *s, struct git_refs *out, struct arena *a)
{
	struct git_raw *r = s->raw;
	struct git_refs seen;
	int rc;

	hang_up(&r->conn);
	r->ready = false;
	rc = git_raw_dial(s, r->changing ? "receive-pack" : "upload-pack", &r->conn);
	if (rc == 0)
		rc = git_seen_list(s, &seen, a); /* while the service starts */
	if (rc == 0)
		rc = listen_to(s, &r->conn, out, a);
	if (rc == 0 && !all_seen(out, &seen))
		rc = r->changing ? fetch_beside(s, out, &seen, a)
				 : git_raw_fetch(s, &r->conn, out, &seen, a);
	if (rc == 0 && git_ref_find(out, git_main_ref(s)))
		/* otherwise keep the last known refs, because only they can restore the queue */
		git_raw_note(s, out, &seen, a);
	r->ready = rc == 0 && r->changing;
	if (!r->ready)
		hang_up(&r->conn);
	return rc;
}

/* --- pushing ------------------------------------------------------------------------------------ */

static void add_commands(struct git *s, const struct git_move *moves, size_t n, bool atomic,
			 struct buf *out, struct arena *a)
{
	for (size_t i = 0; i < n; i++) {
		struct buf line = BUF_MAX(4096);

		buf_addf(&line, "%s %s %s", git_hex(a, &moves[i].old).p, git_hex(a, &moves[i].to).p,
			 arena_cstr(a, git_full(s, moves[i].name, a)));
		if (i == 0) {
			buf_addc(&line, '\0');
			buf_addf(&line, " report-status%s agent=pawl", atomic ? " atomic" : "");
		}
		git_pkt_add(out, buf_str(&line));
		buf_free(&line);
	}
	git_pkt_flush(out);
}

static bool only_removes(const struct git_move *moves, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!git_oid_is_zero(&moves[i].to))
			return false;
	return true;
}

bool git_is_late(struct str reason)
{
	return str_is(reason, "atomic transaction failed") ||
	       str_is(reason, "failed to update ref") || str_starts(reason, STR("failed to lock"));
}

static enum git_pushed git_raw_refusal(struct str reason)
{
	if (git_is_late(reason))
		return PUSH_LATE;
	return str_is(reason, "missing necessary objects") ? PUSH_NOT_HERE : PUSH_DECLINED;
}

/* The report is "unpack ok", then "ok REF" or "ng REF REASON" for each ref. */
static enum git_pushed read_report(struct git_conn *c, size_t n, struct str *why, struct arena *a)
{
	enum git_pushed how = PUSHED;
	size_t good = 0;
	struct str line;
	int rc;

	while ((rc = git_pkt_read(c, &line)) == PKT_LINE) {
		if (str_cut_prefix(&line, STR("ng "))) {
			(void)str_cut(&line, ' ');
			how = git_raw_refusal(line);
			*why = arena_str(a, line);
		} else if (str_cut_prefix(&line, STR("unpack ")) && !str_is(line, "ok")) {
			*why = arena_str(a, line);
			return PUSH_DECLINED;
		} else if (str_starts(line, STR("ok "))) {
			good++;
		}
	}
	if (rc == PKT_FLUSH && how == PUSHED && good < n)
		return PUSH_UNKNOWN;
	return rc == PKT_FLUSH ? how : PUSH_UNKNOWN;
}

static int send_all(struct git *s, const struct git_move *moves, size_t n, bool atomic,
		    struct arena *a)
{
	struct git_raw *r = s->raw;
	struct buf b = BUF_MAX(SEND_MAX);
	git_buf pack = { 0 };
	int rc = 0;

	add_commands(s, moves, n, atomic, &b, a);
	if (!only_removes(moves, n) && git_pack_made(s, r->made, r->n_made, &pack))
		rc = -EIO;
	if (rc == 0)
		rc = git_conn_send(&r->conn, buf_str(&b));
	if (rc == 0)
		rc = git_conn_send(&r->conn, str_n(pack.ptr, pack.size));
	git_buf_dispose(&pack);
	buf_free(&b);
	return rc;
}

/* If the server's disk is full, the program's stderr says more than its report. */
static void git_raw_explain(struct git_conn *c, enum git_pushed how, struct str *why,
			    struct arena *a)
{
	struct str last = git_conn_said(c), full = git_full_line(buf_str(&c->said));

	if (full.n || how == PUSH_UNKNOWN)
		*why = arena_str(a, full.n ? full : last);
}

enum git_pushed git_raw_push(struct git *s, const struct git_move *moves, size_t n, bool atomic,
			     struct str *why, struct arena *a)
{
	struct git_raw *r = s->raw;
	enum git_pushed how = PUSH_UNKNOWN;
	struct git_refs refs;

	if (!r->ready && git_raw_hello(s, "receive-pack", &r->conn, &refs, a)) {
		*why = arena_str(a, str_c(s->base.env.err->text));
	} else if (atomic && !r->atomic) {
		how = PUSH_ONE_ONLY;
	} else {
		int rc;

		r->conn.end = os_boot_ms() + git_net_ms(s);
		r->conn.busy = r->endpoint.kind == CONN_PATH;
		rc = send_all(s, moves, n, atomic, a);
		if (rc == 0 || rc == -EPIPE)
			how = read_report(&r->conn, n, why, a);
		if (how == PUSH_UNKNOWN || how == PUSH_DECLINED)
			git_raw_explain(&r->conn, how, why, a);
	}
	r->ready = false;
	hang_up(&r->conn);
	return how;
}
