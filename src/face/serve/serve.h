/*
 * serve: queues over HTTP. One thread does all input and output (http/http_server.h). Each open queue has
 * a thread of its own, its worker, because a store may block. A job goes from the loop to a worker
 * and comes back with its answer:
 *
 *   serve_routes.c     checks Host, token, role and limits, and finds the handler
 *   access.c    tokens and limits of callers
 *   worker.c      one queue's thread: takes all jobs that arrived during the last commit, keeps waiting calls
 *   worker_order.c      the order of the jobs in a batch
 *   serve_call.c   sends answers, and bounds the memory of those that are being made or are not read yet
 *   serve_call.c      one command with JSON arguments
 *   packed_calls.c    packed requests; the changes of all jobs in a batch are committed together
 *   worker_order.c     leases that expire
 *   late_requests.c      requests that arrive after their repetition
 *   serve_queue.c     the other functions of a queue, for remote queues
 *   serve_events.c    one queue's live stream
 *   mcp_http.c  MCP for models; mcp_http.h names its other parts and draws the states of a session
 *   web_files.c       the board's files
 *   web_files.c  the board in one file
 *   serve_metrics.c, serve_openapi.c, serve_log.c   /metrics, /openapi.json, log lines and JSON errors
 */
#ifndef FACE_SERVE_SERVE_H
#define FACE_SERVE_SERVE_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>

#include "client/bearer.h"
#include "client/redact.h"
#include "cmd/cmd_modules.h"
#include "http/http_origin.h"
#include "http/http_server.h"
#include "queue/frame.h"
#include "queue/queue.h"

#define WAIT_MAX_MS 60000
#define DRAIN_MS 25000
#define WORKERS_MAX 64   /* open queues besides the server's own */
#define WORKERS_SPARE \
	16 /* of these, reserved for callers that have opened fewer queues than this */
#define ANSWER_MAX BODY_MAX
#define ANSWER_SHORT (64u << 10) /* every caller gets answers of this length */
#define READ_ROOM (128u << 20)   /* memory of one packed read, before it becomes an answer */
#define JSON_ROOM (64u << 20)    /* the same for one command */

/* --- callers ------------------------------------------------------------------------------------ */

/* The limits of one token. Entries are never freed: there are as many as tokens. */
struct meter {
	struct meter *next;
	char *name;
	double calls; /* left of the burst */
	int64_t filled_ms;
	int64_t used; /* wall clock */
	int waits, streams;
	struct http_party party; /* its connections */
	atomic_size_t unsent;    /* bytes of long answers that it has not read yet: see answers.c */
	struct arena_pool memory; /* of its answers, from the first byte that is read for them */
};

struct http_caller {
	struct meter *meter;
	char *name, *agents, *queue; /* of the token; queue NULL: any */
	char *hash;                  /* of the token; empty: no token was needed */
	enum role role;
};

struct access {
	char *dir;         /* the state folder */
	bool none;         /* --auth none */
	bool own;          /* the tokens are only in memory: those of one person's board */
	struct str secret; /* then: the token for this run */
	struct stat seen;  /* of the file of tokens when it was read */
	int fault;    /* 0; -errno: the file cannot be read, and no token is valid until it can */
	bool checked; /* at that file, in this turn of the loop */
	int64_t checked_ms;
	struct http_later *later;
	struct arena arena;
	struct bearers list;
	struct meter *meters;
	struct failures *failures;
	struct known *known;
	int64_t noted_ms; /* when the uses were written */
	uint64_t refused;
};

struct serve;

void access_open(struct access *x);
/* Reads the tokens again if the file changed, or always. 0 or -errno: until the next success no token is valid. */
int access_load(struct access *x, bool always);
/* Finds the caller. owner: the user of the server, who needs no token. 0, or the status of a refusal (401, 429, 503), and the reason. 429: the caller has failed too often, so
 * the answer is best delayed. */
int access_check(struct serve *s, const struct http_request *r, struct str address, bool owner,
		 struct http_caller *out, const char **reason, int *retry_s);
/* Finds a valid token by the start of its hash, and its whole hash, which is valid until the next call. */
bool access_hash(struct serve *s, struct str start, struct str *hash);
/* Makes the tokens of one person's board. Returns one that is good for one login. */
struct str access_own(struct access *x, struct str agent);
/* The token of this run, in exchange for the one that is good for one login; empty: the caller has another one. */
struct str access_exchange(struct access *x, const struct http_caller *c);
/* Takes one call from the caller's burst. false: too many; *retry_s: when it may call again. */
bool access_spend(struct serve *s, struct meter *m, int *retry_s);
/* Takes more calls, which came in one request. They may exceed the burst: then the caller's next requests are refused until
 * it has made up for them. */
void access_charge(struct meter *m, size_t calls);
void access_note_uses(struct access *x, bool now);
/* Is the token of this caller still valid? */
bool access_holds(struct serve *s, const struct http_caller *c);
/* The same for the thread of a desk, by the hash of the token. Tokens that cannot be read are not valid. */
struct worker;
bool access_worker_holds(struct worker *d, const char *hash);
void access_close(struct access *x);
void caller_free(struct http_caller *c);

/* --- jobs --------------------------------------------------------------------------------------- */

enum job_kind { JOB_COMMAND, JOB_PACKED, JOB_STORE, JOB_EVENTS, JOB_COUNT, JOB_MCP, JOB_SETTLE };

struct store_call;
struct post;
struct mcp_session;

/* One call of a job, for the metrics. */
struct made {
	const struct command *command;
	enum result code;
};

struct job {
	struct job *next;
	enum job_kind kind;
	struct worker *worker;
	struct http_exchange *exchange; /* only for the loop */
	struct http_caller caller;
	struct meter
		*payer; /* the caller whose share of the desk it takes; NULL: the server itself */
	const struct command *command;
	const struct store_call *store; /* of JOB_STORE */
	bool all;                       /* of JOB_PACKED: all calls are made, or none */
	int64_t attempt;                /* of JOB_PACKED: the caller sends it for this time */
	struct batch *batch;            /* of JOB_PACKED: its parts, as far as they are read */
	struct asked *asked; /* of JOB_COMMAND: its change, for the commit of this turn */
	struct post *post;   /* of JOB_MCP and JOB_SETTLE */
	struct buf body, after;
	size_t parts; /* of JOB_COMMAND and JOB_MCP: the calls that it made */
	struct attempts wait;
	bool first;    /* of a stream: begin with a snapshot, or after a cursor that the peer had */
	bool wakes;    /* of a stream: the peer reads the queue itself when something changed */
	bool parked;   /* the caller's meter counts it */
	bool gone;     /* its peer has closed; under the lock of the desk */
	bool tried;    /* this turn made its calls */
	bool put_off;  /* it goes on in the next turn */
	bool untried;  /* it waits, and the queue has changed since its last try */
	int64_t since; /* of a stream: leases that expired until then were reported */
	size_t pages; /* of a stream: the pages of a snapshot under way that were sent; 0: there is none */
	struct buf
		page; /* the last task of these pages; or the last expired lease of a page, which expired at `since` */
	bool more; /* of a stream: look again when the peer has taken this */
	int64_t began_ns;
	void *owner; /* the stream or the count that it belongs to */
	/* the answer */
	int status; /* 0: none, its peer is gone */
	enum result code;
	struct buf answer;
	const char *type;
	size_t unsent;     /* bytes of it that the caller's meter counts */
	struct made *made; /* of JOB_PACKED and JOB_MCP */
	size_t made_n;
};

/* --- desks -------------------------------------------------------------------------------------- */

/* Leases that expired; see lapse.c. Of the thread of the desk. */
struct expiries {
	int64_t since;   /* those that expired until then are counted, or were before the server */
	int64_t next;    /* when the next lease expires, by os_boot_ms(); 0: none is known */
	int64_t checked; /* when the desk looked, by os_boot_ms() */
	bool stale;      /* a call may have taken a lock after that */
	uint64_t n;
};

struct worker {
	struct worker *next;
	struct serve *serve;
	char *queue; /* empty: the one that the server was started for */
	pthread_t thread;
	pthread_mutex_t lock;
	int wake;                 /* an eventfd */
	struct http_later *later; /* wakes it after the requests that the loop can read now */
	/* under the lock */
	struct job *first, **last;
	bool stop;
	/* of the loop */
	size_t jobs;
	struct stream *streams;
	struct meter *opener; /* the caller that opened it */
	int64_t used_ms;      /* when it got its last job, by os_boot_ms() */
	/* of its thread */
	struct session session;
	struct arena arena;
	struct job *waiting, **waiting_last;
	struct access access;     /* the tokens, to judge calls that wait */
	struct job *pending;      /* jobs that other turns have left over */
	const struct meter *ran;  /* the caller of the last job that took time in this turn */
	const struct meter *slow; /* the caller whose job made the last turn long; NULL: none */
	bool untried;             /* so is one of the waiting calls */
	int64_t batch_began;      /* by os_boot_ms() */
	bool open;
	bool creates; /* the turn has a job that creates the queue */
	struct expiries expiries;
	struct mcp_session *mcp_sessions;
	bool mcp_sessions_changed; /* the queue has changed since this round over the seats began */
	bool round_changed;        /* it had changed before */
	bool untold;               /* the round is not over */
	atomic_bool watched;       /* somebody streams its events */
	atomic_bool reload;        /* the settings may have changed: open it again */
	atomic_bool broken;        /* it could not be opened */
	atomic_bool in_session; /* a session of MCP is in use: it holds a lock, waits or listens */
};

/* The desk of the queue; it may be opened for this caller. NULL: too many are in use, or no thread can be made. */
struct worker *worker_find(struct serve *s, struct str queue, struct meter *opener);
struct str worker_name(const struct worker *d);
/* Hands the job over. */
void worker_put(struct worker *d, struct job *j);
/* Tells the desk that the peer of the job is gone. */
void worker_gone(struct job *j);
/* Gives the answered job back to the loop. */
void worker_answer(struct job *j);
/* Lets every desk see that the server drains. */
void worker_wake_all(struct serve *s);
/* Ends every desk; waiting calls get an answer first. */
void worker_end_all(struct serve *s);
/* Closes the desk if its queue cannot be opened: callers could otherwise fill the server with names of queues that do not
 * exist. */
void worker_drop_broken(struct serve *s, struct worker *d);
/* After the HTTP server: its connections tell the desks that their peers are gone. */
void worker_free_all(struct serve *s);
/* The jobs of a turn in the order in which they are made. The caller that made the last turn long comes after the others. */
struct job *fair_order(const struct worker *d, struct job *list);
/* Opens the queue, in the thread of the desk. false: *ans has the reason. */
bool worker_open(struct worker *d, struct answer *ans, struct arena *a);
/* Opens the queue again for the next turn if this answer may come from a store that moved. */
void worker_failed(struct worker *d, const struct answer *ans);
/* Has the turn lasted so long that it should end, because other callers may wait? */
bool worker_share_is_over(const struct worker *d);
/* A session for one call of this caller. */
struct session worker_session(struct worker *d, const struct http_caller *c, struct arena *a);

struct job *job_new(enum job_kind kind, struct http_exchange *x, struct http_caller *c);
void job_free(struct job *j);
/* Is the peer of the job gone? Nobody would learn of a task that it got. */
bool job_is_gone(const struct job *j);
/* Runs in the thread of the desk. true: the answer is there; false: the job waits, until j->due at the latest. */
bool call_run(struct worker *d, struct job *j, bool last);
/* May the change of the command be committed with those of others? */
bool call_joins(const struct command *c);
/* Asks the command for its change: the caller makes it, in a commit with others, and calls call_end() with the answer.
 * NULL: there is no change to make; the job may have its answer already. */
const struct request *call_begin(struct worker *d, struct job *j, bool last);
void call_end(struct worker *d, struct job *j, const struct answer *ans, bool last);
/* Drops the change: the job makes it alone. */
void call_forget(struct job *j);
/* The changes of packed jobs and of commands of a list, in one commit. Jobs that are answered have a status afterwards. */
void packed_run(struct worker *d, struct job *list, bool last);
/* Makes the next parts of a packed job: its reads, or a call that waits. true: the answer is there. */
bool packed_go_on(struct worker *d, struct job *j, bool last);
void packed_close(struct job *j);
/* The command with a route that makes such a request. NULL: there is none. */
const struct command *packed_command(enum op op);
struct late *late_new(void);
void late_free(struct late *l);
enum arrival {
	ARRIVAL_FIRST,
	ARRIVAL_AGAIN, /* the call came before; the network or the client has repeated it */
	ARRIVAL_LATE /* a later attempt came before it, or the caller has ended the lock of the call */
};
enum arrival late_check(struct late *l, const struct request *rq, struct str call, int64_t attempt);
/* Has this very call got its lock before, or ended it? */
bool late_settled(struct late *l, const struct request *rq, struct str call);
void late_note(struct late *l, const struct request *rq, struct str call, const struct answer *ans);
/* A function of the queue that is not a call: /v1/store?do=NAME. NULL: there is none of this name. */
const struct store_call *store_find(struct str name);
enum role store_role(const struct store_call *c);
/* Does one of the jobs create the queue of the desk? */
bool store_creates(const struct worker *d, const struct job *list);
void store_run(struct worker *d, struct job *j);
/* Sets a JSON error as the answer of the job. */
void job_refuse(struct job *j, int status, enum result code, struct str message, struct str hint,
		const char *fault);
void job_fail(struct job *j, const struct answer *ans);
/* The agent of a call, in `a`. false: the token does not allow this name; *why says so. */
bool caller_agent(const struct serve *s, const struct http_caller *c, struct str said,
		  struct str *out, const char **why);
/* Takes the parts of the job from the caller's burst; the request itself has taken one. */
void job_charge(struct job *j);
/* The call does not wait any more. */
void job_unpark(struct job *j);
/* The loop has the answered job. */
void job_done(void *job);

/* --- the memory of answers --------------------------------------------------------------------------- */

/* The memory of all answers, and that of one token, to begin with. */
struct arena_pool answers_memory(struct arena_pool *whole);
/* An arena for what is read for the answer. If it gets crowded, the caller has to come again. */
struct arena answers_arena(const struct job *j, size_t limit);
/* The bytes that the answer may have. Whatever does not fit is refused, or made brief if it tells of a change. Less than
 * ANSWER_MAX: the caller has to read its other answers first. */
size_t answers_room(const struct job *j);
/* Counts the bytes that the answer has now. In the thread of the desk, before the loop gets the job. */
void answers_made(struct job *j);
void answers_drop(struct job *j);
/* Counts the memory of the JSON body in an arena of the caller's. false: the job is refused. */
bool answers_body(struct job *j, struct arena *a);
/* Refuses a job that only reads, because the answers of its caller need too much memory. */
void answers_refuse(struct job *j);
/* Sends the answer and ends the exchange. */
void answers_send(struct job *j, struct http_headers extra);

/* --- leases that expire ---------------------------------------------------------------------------- */

/* When the desk has to look, by os_boot_ms(); INT64_MAX: never. */
int64_t expiry_due(const struct worker *d);
/* Counts the leases that expired. true: there are some that were not known. */
bool expiry_check(struct worker *d);

/* --- events ------------------------------------------------------------------------------------- */

/* wakes: the stream has only a line for each change, and counts as a call that waits. */
void events_start(struct serve *s, struct http_exchange *x, struct worker *d, struct http_caller *c,
		  bool wakes);
/* Runs in the thread of the desk: looks for news after the cursor of the job. */
void events_run(struct worker *d, struct job *j);
/* The loop has the news. */
void events_done(struct job *j);
/* The store changed: look again. Runs in the loop. */
void events_check(void *worker);
void events_end_all(struct serve *s);

/* --- the board ------------------------------------------------------------------------------------ */

struct web_file;
/* The file of the board at this path; NULL: there is none. */
const struct web_file *web_find(struct str path);
void web_serve(struct http_exchange *x, const struct web_file *f);
/* Tells the caller its role and name. */
void web_whoami(struct serve *s, struct http_exchange *x, const struct http_caller *c);

/* Answers /v1/proof. */
void proof_serve(struct serve *s, struct http_exchange *x);

/* Opens the board of one person in a browser, with the token that is good for one login. */
void browser_open(struct serve *s, struct str once);
/* Removes the page that has that token. */
void browser_forget(struct serve *s);

/* Writes the board with the tasks of the queue to a file; -: standard output. */
enum result snapshot_export(struct session *s, struct str file, struct reply *out);

/* --- counts and words ---------------------------------------------------------------------------- */

#define ROUTES 13
extern const char *const route_names[ROUTES];
enum route {
	ROUTE_OTHER,
	ROUTE_COMMAND,
	ROUTE_CALL,
	ROUTE_EVENTS,
	ROUTE_OPENAPI,
	ROUTE_METRICS,
	ROUTE_LIVEZ,
	ROUTE_READYZ,
	ROUTE_STORE,
	ROUTE_WEB,
	ROUTE_WHOAMI,
	ROUTE_MCP,
	ROUTE_PROOF
};

#define STATUSES 16
#define COMMANDS_MAX 128
#define CODES 10
#define BUCKETS 8

struct spread { /* a histogram */
	uint64_t n[BUCKETS + 1];
	double sum;
};

struct commits { /* the same for several threads, of whole numbers */
	_Atomic uint64_t n[BUCKETS + 1], sum;
};

struct counts {
	uint64_t http[ROUTES][STATUSES];
	uint64_t calls[COMMANDS_MAX][CODES];
	struct spread seconds[COMMANDS_MAX];
	uint64_t lost, waits, streams, failures, log_dropped;
	struct commits commit_calls, commit_us;
};

void counts_http(struct serve *s, enum route route, int status);
/* Counts the calls of an answered job. */
void counts_job(struct serve *s, const struct job *j);
/* From any thread: a commit of this number of changes. */
void counts_commit(struct serve *s, size_t changes, int64_t took_us);
/* Answers /metrics; the counts of tasks come from the desks. */
void metrics_serve(struct serve *s, struct http_exchange *x, struct http_caller *c);
void metrics_run(struct worker *d, struct job *j);
void metrics_done(struct job *j);
char *openapi_text(void);

/* {"ok":false,"error":{"code":…,"message":…}}, as every face shows it */
void say_error(struct buf *out, const char *code, const char *message, const char *hint,
	       const char *fault);
void say_error_body(int status, const char *reason, struct buf *out, void *ctx);
void say_log(const struct http_request *r, const char *address, int status, size_t bytes,
	     int64_t took_ms, void *serve);
/* A line for the person who started the server. */
void say_line(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* A line of the log about the server itself, which --log none does not suppress. level: info or warn. */
void say_note(struct serve *s, const char *level, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* --- the server ---------------------------------------------------------------------------------- */

/* Sessions of MCP clients (endpoint.h). */
struct session_ids {
	struct arena arena, ended_arena;
	struct str key, ended;
	char *ended_file; /* NULL: they are only in memory */
	struct stat seen; /* of that file */
};

struct serve {
	struct session *session; /* of the command: settings and place */
	const struct serve_args *args;
	struct http_server *http;
	struct http_guard guard;
	struct access access;
	struct session_ids session_ids;
	struct worker *workers;
	struct late *late;
	struct counts counts;
	char *openapi;
	char *page; /* of browser_open(); NULL: there is none */
	bool read_only, ready;
	atomic_bool draining; /* waiting calls are answered at once */
	int log;              /* 0: logfmt, 1: JSON, 2: none */
	uint64_t log_unsaid;  /* dropped lines that no line of the log has counted yet */
	int64_t started;      /* wall clock */
	int64_t rate, burst;
	int64_t waits_max, streams_max;
	struct arena_pool memory;     /* of all answers */
	atomic_int commits;           /* being made, by all desks */
	_Atomic int64_t sessions_max; /* of each desk */
};

/* The handler of http/http_server.h. */
void route_request(struct http_exchange *x, void *serve);
/* Lets an admin send more than other callers. */
void route_head(struct http_exchange *x, void *serve);
enum route route_of(struct str path);
const struct command *route_command(struct str name);
/* Refuses the request with a JSON error. */
void route_refuse(struct http_exchange *x, int status, const char *reason, const char *hint);
void route_refuse_method(struct http_exchange *x, const char *allowed);
/* The value of a member of the query; empty: it is not there. false: it is not valid. */
bool route_query(struct str query, const char *name, struct str *out, struct arena *a);
/* The desk that the request is for; NULL: it is refused. */
struct worker *route_worker(struct serve *s, struct http_exchange *x, const struct http_caller *c);
/* Gives the job to its desk, which learns if the peer goes away. */
void route_hand_over(struct serve *s, struct http_exchange *x, struct worker *d, struct job *j,
		     bool may_wait);
/* The client's address: of the peer, or from the proxy. */
struct str route_address(const struct serve *s, const struct http_request *r);
enum result serve_run(struct session *s, const struct serve_args *a, struct reply *out);

struct web_form {
	const char *begin, *end;
	const char *etag; /* the SHA-256 of the bytes, in quotes */
};

struct web_file {
	const char *path, *type;
	struct web_form plain, gzip;
};

extern const struct web_file web_files[]; /* ends with a path of NULL */

#endif
