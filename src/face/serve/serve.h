/*
 * serve: queues over HTTP. One thread does all input and output (http/http_server.h). Each open queue has
 * a thread of its own, its worker, because a store may block. A job goes from the loop to a worker
 * and comes back with its answer:
 *
 *   serve_routes.c     checks Host, token, role and limits, and finds the handler
 *   serve_login.c    finds the caller by the token; failed logins; limits of each token
 *   serve_roles.c    which token may call which operation
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
#define WORKERS_MAX 64 /* open queues besides the server's own */
#define WORKERS_SPARE \
	16 /* of these, reserved for callers that have opened fewer queues than this */
#define ANSWER_MAX BODY_MAX
#define ANSWER_SHORT (64u << 10) /* every caller gets answers of this length */
#define READ_ROOM (128u << 20)   /* memory of one packed read, before it becomes an answer */
#define JSON_ROOM (64u << 20)    /* memory of one command, before its answer becomes JSON */

/* --- callers ------------------------------------------------------------------------------------ */

/* One token's limits. Entries stay until the server ends: there are only as many as tokens. */
struct meter {
	struct meter *next;
	char *name;
	double calls; /* calls that are left of the burst */
	int64_t filled_ms;
	int64_t used; /* wall clock */
	int waits, streams;
	struct http_party party; /* the token's connections */
	atomic_size_t unsent;    /* bytes of long answers that are not read yet: see serve_call.c */
	struct arena_pool
		memory; /* the memory of the token's answers, from the first byte that is read for them */
};

struct http_caller {
	struct meter *meter;
	char *name, *agents, *queue; /* from the token; queue NULL: any */
	char *hash;                  /* the token's hash; empty: no token was needed */
	enum role role;
};

struct serve_login {
	char *dir;         /* the state folder */
	bool none;         /* --auth none */
	bool own;          /* the tokens are only in memory: they belong to one person's board */
	struct str secret; /* if own: the token for this run */
	struct stat seen;  /* the token file when it was read */
	int fault;    /* 0; -errno: the file cannot be read, and no token is valid until it can */
	bool checked; /* the token file was checked in this iteration of the loop */
	int64_t checked_ms;
	struct http_later *later;
	struct arena arena;
	struct bearers list;
	struct meter *meters;
	struct failures *failures;
	struct known *known;
	int64_t noted_ms; /* when the times of last use were written */
	uint64_t refused;
};

struct serve;

void serve_login_open(struct serve_login *x);
/* Reads the tokens again if the file changed, or always. Returns 0 or -errno. After an error no token is valid until a
 * read succeeds. */
int serve_login_load(struct serve_login *x, bool always);
/* Finds the caller. owner: the user of the server, who needs no token. Returns 0, or the status
 * of a refusal (401, 429, 503) and its reason. 429: the caller has failed too often; delay the
 * answer. */
int serve_login_check(struct serve *s, const struct http_request *r, struct str address, bool owner,
		      struct http_caller *out, const char **reason, int *retry_s);
/* Finds a valid token by the start of its hash. The whole hash stays valid until the next call. */
bool serve_login_hash(struct serve *s, struct str start, struct str *hash);
/* Makes the tokens of one person's board. Returns a token that is valid for one login. */
struct str serve_login_own(struct serve_login *x, struct str agent);
/* Exchanges the token for one login for the token of this run. Empty: the caller sent another
 * token. */
struct str serve_login_exchange(struct serve_login *x, const struct http_caller *c);
/* Takes one call from the caller's burst. false: there were too many calls; *retry_s: when the
 * caller may call again. */
bool serve_login_spend(struct serve *s, struct meter *m, int *retry_s);
/* Takes the further calls of one request from the burst. They may exceed the burst: then the caller's next
 * requests are refused until the burst has refilled. */
void serve_login_charge(struct meter *m, size_t calls);
void serve_login_note_uses(struct serve_login *x, bool now);
/* Is this caller's token still valid? */
bool serve_login_holds(struct serve *s, const struct http_caller *c);
/* Does what serve_login_holds() does, in a worker's thread, by the token's hash. If the tokens cannot be read, none is
 * valid. */
struct worker;
bool serve_login_worker_holds(struct worker *d, const char *hash);
void serve_login_close(struct serve_login *x);
void caller_free(struct http_caller *c);

/* --- serve_roles.c ------------------------------------------------------------------------------- */

/* The role in which the server serves the caller: its own, or a reader's if the server is read-only. */
enum role serve_role(const struct serve *s, const struct http_caller *c);
/* false: the caller's token, or a read-only server, does not allow a call that needs this role. */
bool serve_allows(const struct serve *s, const struct http_caller *c, enum role need);
extern const char serve_read_only[]; /* the text of such a refusal */

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
		*payer; /* the caller whose share of the worker the job uses; NULL: the server */
	const struct command *command;
	const struct store_call *store; /* for JOB_STORE */
	bool all;                       /* for JOB_PACKED: either all calls are made, or none */
	int64_t attempt;                /* for JOB_PACKED: the number of this attempt */
	struct batch *batch;            /* for JOB_PACKED: the parts that have been read */
	struct asked
		*asked;    /* for JOB_COMMAND: the command's change, for the commit of this batch */
	struct post *post; /* for JOB_MCP and JOB_SETTLE */
	struct buf body, after;
	size_t parts; /* for JOB_COMMAND and JOB_MCP: the number of calls that it made */
	struct attempts wait;
	bool first;   /* for a stream: begin with a snapshot, or after a cursor that the peer had */
	bool wakes;   /* for a stream: the peer reads the queue itself when something has changed */
	bool parked;  /* the caller's meter counts this waiting job */
	bool gone;    /* its peer has closed; under the worker's lock */
	bool tried;   /* this batch made its calls */
	bool put_off; /* it continues in the next batch */
	bool untried; /* it is waiting, and the queue has changed since its last attempt */
	int64_t since; /* for a stream: it has reported the leases that expired up to this time */
	size_t pages; /* for a stream: the pages of an unfinished snapshot that were sent; 0: there is none */
	struct buf
		page; /* the last task of these pages; or the last expired lease of a page, which expired at `since` */
	bool more; /* for a stream: read again when the peer has taken this */
	int64_t began_ns;
	void *owner; /* the stream or the metrics request that it belongs to */
	/* the answer */
	int status; /* 0: there is no answer, because its peer is gone */
	enum result code;
	struct buf answer;
	const char *type;
	size_t unsent;     /* bytes of the answer that the caller's meter counts */
	struct made *made; /* for JOB_PACKED and JOB_MCP */
	size_t made_n;
};

/* --- workers ------------------------------------------------------------------------------------ */

/* Expired leases; see worker_order.c. Only the worker's thread uses it. */
struct expiries {
	int64_t since;   /* leases that expired up to this time, but after the start, are counted */
	int64_t next;    /* when the next lease expires, by os_boot_ms(); 0: none is known */
	int64_t checked; /* when the worker last read the locks, by os_boot_ms() */
	bool stale;      /* a call may have taken a lock since */
	uint64_t n;
};

struct worker {
	struct worker *next;
	struct serve *serve;
	char *queue; /* empty: the queue that the server was started for */
	pthread_t thread;
	pthread_mutex_t lock;
	int wake;                 /* an eventfd */
	struct http_later *later; /* wakes it after the requests that the loop can read now */
	/* under the lock */
	struct job *first, **last;
	bool stop;
	/* only for the loop */
	size_t jobs;
	struct stream *streams;
	struct meter *opener; /* the caller that opened it */
	int64_t used_ms;      /* when the worker got its last job, by os_boot_ms() */
	/* only the worker's thread uses these */
	struct session session;
	struct arena arena;
	struct job *waiting, **waiting_last;
	struct serve_login login; /* the tokens, which the worker checks for waiting calls */
	struct job *pending;      /* jobs that earlier batches left over */
	const struct meter *ran;  /* the caller of the last job that took time in this batch */
	const struct meter *slow; /* the caller whose job made the last batch long; NULL: none */
	bool untried;             /* a waiting call has `untried` set */
	int64_t batch_began;      /* by os_boot_ms() */
	bool open;
	bool creates; /* the batch has a job that creates the queue */
	struct expiries expiries;
	struct mcp_session *mcp_sessions;
	bool mcp_sessions_changed; /* the queue has changed since this round over the sessions began */
	bool round_changed;        /* the queue had changed before this round began */
	bool untold;               /* the round over the sessions is not over */
	atomic_bool watched;       /* a caller is streaming its events */
	atomic_bool reload;        /* the settings may have changed: open it again */
	atomic_bool broken;        /* the queue could not be opened */
	atomic_bool in_session;    /* an MCP session is in use: it holds a lock, waits or listens */
};

/* Finds the queue's worker, or opens one for this caller. NULL: too many are in use, or no thread can
 * be created. */
struct worker *worker_find(struct serve *s, struct str queue, struct meter *opener);
struct str worker_name(const struct worker *d);
/* Hands the job over. */
void worker_put(struct worker *d, struct job *j);
/* Tells the worker that the job's peer is gone. */
void worker_gone(struct job *j);
/* Returns the answered job to the loop. */
void worker_answer(struct job *j);
/* Makes every worker notice that the server is draining. */
void worker_wake_all(struct serve *s);
/* Ends every worker; waiting calls get an answer first. */
void worker_end_all(struct serve *s);
/* Closes the worker if its queue cannot be opened. Otherwise callers could fill the server with
 * names of queues that do not exist. */
void worker_drop_broken(struct serve *s, struct worker *d);
/* Call it after the HTTP server is freed: until then its connections tell the workers that their
 * peers are gone. */
void worker_free_all(struct serve *s);
/* Sorts the jobs of a batch into the order in which they are made. The caller that made the last
 * batch long comes after the others. */
struct job *fair_order(const struct worker *d, struct job *list);
/* Opens the queue, in the worker's thread. false: *ans has the reason. */
bool worker_open(struct worker *d, struct answer *ans, struct arena *a);
/* Opens the queue again for the next batch if this answer may come from a store that was moved. */
void worker_failed(struct worker *d, const struct answer *ans);
/* Has the batch lasted so long that it should end, because other callers may be waiting? */
bool worker_share_is_over(const struct worker *d);
/* A session for one call of this caller. */
struct session worker_session(struct worker *d, const struct http_caller *c, struct arena *a);

struct job *job_new(enum job_kind kind, struct http_exchange *x, struct http_caller *c);
void job_free(struct job *j);
/* Is the job's peer gone? Then nobody would learn of a task that the job got. */
bool job_is_gone(const struct job *j);
/* Runs in the worker's thread. true: the job has its answer; false: it waits, until j->wait ends at
 * the latest. */
bool call_run(struct worker *d, struct job *j, bool last);
/* Can the command's change be committed together with others? */
bool call_joins(const struct command *c);
/* Asks the command for its change. The caller commits it with others and passes the answer to
 * call_end(). NULL: there is no change to make; the job may have its answer already. */
const struct request *call_begin(struct worker *d, struct job *j, bool last);
void call_end(struct worker *d, struct job *j, const struct answer *ans, bool last);
/* Drops the change; the worker then runs the job alone. */
void call_forget(struct job *j);
/* Commits the changes of the packed jobs and commands in the list together. Afterwards each
 * answered job has a status. */
void packed_run(struct worker *d, struct job *list, bool last);
/* Makes the next parts of a packed job: its reads, or a call that waits. true: the job has its
 * answer. */
bool packed_go_on(struct worker *d, struct job *j, bool last);
void packed_close(struct job *j);
/* The command with a route that makes this kind of request. NULL: there is none. */
const struct command *packed_command(enum op op);
struct late *late_new(void);
void late_free(struct late *l);
enum arrival {
	ARRIVAL_FIRST,
	ARRIVAL_AGAIN, /* the call came before; the network or the client has repeated it */
	ARRIVAL_LATE   /* a later attempt came before it, or the caller has ended the call's lock */
};
enum arrival late_check(struct late *l, const struct request *rq, struct str call, int64_t attempt);
/* Has this very call already got its lock, or already ended it? */
bool late_settled(struct late *l, const struct request *rq, struct str call);
void late_note(struct late *l, const struct request *rq, struct str call, const struct answer *ans);
/* A function of the queue that is not a call: /v1/store?do=NAME. NULL: there is none with this
 * name. */
const struct store_call *store_find(struct str name);
enum role store_role(const struct store_call *c);
/* Does one of the jobs create the worker's queue? */
bool store_creates(const struct worker *d, const struct job *list);
void store_run(struct worker *d, struct job *j);
/* Sets a JSON error as the job's answer. */
void job_refuse(struct job *j, int status, enum result code, struct str message, struct str hint,
		const char *fault);
void job_fail(struct job *j, const struct answer *ans);
/* The agent of a call, allocated in `a`. false: the token does not allow this name; *why says
 * so. */
bool caller_agent(const struct serve *s, const struct http_caller *c, struct str said,
		  struct str *out, const char **why);
/* Takes the job's parts from the caller's burst; the request itself has taken one. */
void job_charge(struct job *j);
/* Records that the call has stopped waiting. */
void job_unpark(struct job *j);
/* The loop calls it when it has received the answered job. */
void job_done(void *job);

/* --- the memory of answers --------------------------------------------------------------------------- */

/* The initial pool for all answers, or (with `whole`) for one token's answers. */
struct arena_pool answers_memory(struct arena_pool *whole);
/* An arena for the data that is read for the answer. If the arena has no room, the call is refused and the caller must retry
 * it. */
struct arena answers_arena(const struct job *j, size_t limit);
/* The bytes that the answer may have. A longer answer is refused; if it reports a change, it is
 * made brief instead. Less than ANSWER_MAX: the caller has to read its other answers first. */
size_t answers_room(const struct job *j);
/* Counts the bytes that the answer has now. Runs in the worker's thread, before the loop gets the
 * job. */
void answers_made(struct job *j);
void answers_drop(struct job *j);
/* Counts the memory of the JSON body in an arena of the caller. false: the job is refused. */
bool answers_body(struct job *j, struct arena *a);
/* Refuses a job that only reads, because its caller's answers need too much memory. */
void answers_refuse(struct job *j);
/* Sends the answer and ends the exchange. */
void answers_send(struct job *j, struct http_headers extra);

/* --- leases that expire ---------------------------------------------------------------------------- */

/* When the worker has to check for expired leases, by os_boot_ms(); INT64_MAX: never. */
int64_t expiry_due(const struct worker *d);
/* Counts the leases that have expired. true: it found expired leases that were not counted before. */
bool expiry_check(struct worker *d);

/* --- events ------------------------------------------------------------------------------------- */

/* wakes: the stream sends only one line for each change, and counts as a waiting call. */
void events_start(struct serve *s, struct http_exchange *x, struct worker *d, struct http_caller *c,
		  bool wakes);
/* Runs in the worker's thread: reads the news after the job's cursor. */
void events_run(struct worker *d, struct job *j);
/* The loop calls it when it has received the news. */
void events_done(struct job *j);
/* The store changed: read the news again. Runs in the loop. */
void events_check(void *worker);
void events_end_all(struct serve *s);

/* --- the board ------------------------------------------------------------------------------------ */

struct web_file;
/* The board's file at this path; NULL: there is none. */
const struct web_file *web_find(struct str path);
void web_serve(struct http_exchange *x, const struct web_file *f);
/* Tells the caller its role and name. */
void web_whoami(struct serve *s, struct http_exchange *x, const struct http_caller *c);

/* Answers /v1/proof. */
void proof_serve(struct serve *s, struct http_exchange *x);

/* Opens one person's board in a browser, with the token that is valid for one login. */
void browser_open(struct serve *s, struct str once);
/* Removes the page that contains that token. */
void browser_forget(struct serve *s);

/* Writes the board with the queue's tasks to a file; -: standard output. */
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
#define CODES 11
#define BUCKETS 8

struct spread { /* a histogram */
	uint64_t n[BUCKETS + 1];
	double sum;
};

struct commits { /* a histogram of whole numbers, for several threads */
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
/* Counts a commit of this number of changes. Any thread may call it. */
void counts_commit(struct serve *s, size_t changes, int64_t took_us);
/* Answers /metrics; the task counts come from the workers. */
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
/* A line of the log about the server itself; --log none does not suppress it. level: info or
 * warn. */
void say_note(struct serve *s, const char *level, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* --- the server ---------------------------------------------------------------------------------- */

/* Session ids of MCP clients (mcp_http.h). */
struct session_ids {
	struct arena arena, ended_arena;
	struct str key, ended;
	char *ended_file; /* NULL: the ended sessions are only in memory */
	struct stat seen; /* that file, when it was read */
};

struct serve {
	struct session *session; /* the session of the command, with its settings and place */
	const struct serve_args *args;
	struct http_server *http;
	struct http_guard guard;
	struct serve_login login;
	struct session_ids session_ids;
	struct worker *workers;
	struct late *late;
	struct counts counts;
	char *openapi;
	char *page; /* the page that browser_open() made; NULL: there is none */
	bool read_only, ready;
	atomic_bool draining; /* waiting calls are answered at once */
	int log;              /* 0: logfmt, 1: JSON, 2: none */
	uint64_t log_unsaid;  /* dropped lines that no log line has reported yet */
	int64_t started;      /* wall clock */
	int64_t rate, burst;
	int64_t waits_max, streams_max;
	struct arena_pool memory;     /* of all answers */
	atomic_int commits;           /* commits that are in progress now, in all workers */
	_Atomic int64_t sessions_max; /* for each worker */
};

/* The handler of http/http_server.h. */
void route_request(struct http_exchange *x, void *serve);
/* Lets an admin send a larger body than other callers may send. */
void route_head(struct http_exchange *x, void *serve);
enum route route_of(struct str path);
const struct command *route_command(struct str name);
/* Refuses the request with a JSON error. */
void route_refuse(struct http_exchange *x, int status, const char *reason, const char *hint);
void route_refuse_method(struct http_exchange *x, const char *allowed);
/* Gets a parameter's value from the query; empty: the query does not have it. false: the value is not valid. */
bool route_query(struct str query, const char *name, struct str *out, struct arena *a);
/* The worker that the request is for; NULL: the request was refused. */
struct worker *route_worker(struct serve *s, struct http_exchange *x, const struct http_caller *c);
/* Gives the job to its worker. If the peer goes away, tells the worker. */
void route_hand_over(struct serve *s, struct http_exchange *x, struct worker *d, struct job *j,
		     bool may_wait);
/* The client's address: the peer's own, or the one that the proxy named. */
struct str route_address(const struct serve *s, const struct http_request *r);
enum result serve_run(struct session *s, const struct serve_args *a, struct reply *out);

/* --- web -------------------------------------------------------------------------------------- */

/* web: the board's files, which are part of the module. tools/embed-web makes the table. */

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
