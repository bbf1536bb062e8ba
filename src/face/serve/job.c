/*
 * A job: one request on its way from the loop to its worker and back. Only one thread owns it at a
 * time. The worker may not touch it any more after it has answered it.
 */
#include "face/serve/mcp_http.h"

#include <stdlib.h>

struct job *job_new(enum job_kind kind, struct http_exchange *x, struct http_caller *c)
{
	struct job *j = mem_alloc(sizeof(*j));

	*j = (struct job){ .kind = kind,
			   .exchange = x,
			   .caller = *c,
			   .payer = c->meter,
			   .body = BUF_MAX(ANSWER_MAX),
			   .after = BUF_MAX(NAME_MAX_BYTES),
			   .page = BUF_MAX(NAME_MAX_BYTES),
			   .answer = BUF_MAX(ANSWER_MAX),
			   .type = "application/json" };
	*c = (struct http_caller){ 0 };
	return j;
}

void job_free(struct job *j)
{
	answers_drop(j);
	caller_free(&j->caller);
	post_free(j->post);
	packed_close(j);
	buf_free(&j->body);
	buf_free(&j->after);
	buf_free(&j->page);
	buf_free(&j->answer);
	free(j->made);
	free(j);
}

void job_refuse(struct job *j, int status, enum result code, struct str message, struct str hint,
		const char *fault)
{
	struct arena a = { 0 };

	j->status = status;
	j->code = code;
	j->type = "application/json";
	j->answer.n = 0;
	j->answer.full = false;
	j->answer.max = ANSWER_MAX;
	say_error(&j->answer, result_name(code), arena_cstr(&a, message), arena_cstr(&a, hint),
		  fault);
	arena_free(&a);
}

void job_fail(struct job *j, const struct answer *ans)
{
	struct arena a = { 0 };
	struct answer shown = *ans;
	bool forbidden = str_is(ans->fault, "forbidden");

	redact_answer(&j->worker->serve->session->client, j->caller.role, &shown, &a);
	job_refuse(j, forbidden ? 403 : result_http(ans->code), ans->code, shown.message,
		   shown.hint, arena_cstr(&a, ans->fault));
	arena_free(&a);
}

bool job_is_gone(const struct job *j)
{
	bool gone;

	pthread_mutex_lock(&j->worker->lock);
	gone = j->gone;
	pthread_mutex_unlock(&j->worker->lock);
	return gone;
}
