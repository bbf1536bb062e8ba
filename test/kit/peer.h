/*
 * peer: a client of `pawl mcp`, for programs without a client library. One call at a time.
 */
#ifndef KIT_PEER_H
#define KIT_PEER_H

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

struct peer {
	FILE *to, *from;
	pid_t pid;
	long long id;
};

/* argv ends with NULL. false: the server could not be started. */
static inline bool peer_open(struct peer *p, char *const *argv)
{
	int down[2], up[2];

	*p = (struct peer){ 0 };
	if (pipe(down) || pipe(up))
		return false;
	p->pid = fork();
	if (p->pid == 0) {
		dup2(down[0], STDIN_FILENO);
		dup2(up[1], STDOUT_FILENO);
		close(down[1]);
		close(up[0]);
		execv(argv[0], argv);
		_exit(127);
	}
	close(down[0]);
	close(up[1]);
	p->to = fdopen(down[1], "w");
	p->from = fdopen(up[0], "r");
	return p->pid > 0 && p->to && p->from;
}

/* The answer to a request; the caller frees it. NULL: the server has ended, or its answer is
 * invalid. */
static inline json_t *peer_ask(struct peer *p, const char *method, json_t *params)
{
	json_t *o = json_pack("{s:s, s:I, s:s, s:o}", "jsonrpc", "2.0", "id", (json_int_t)++p->id,
			      "method", method, "params", params);
	char *line = NULL;
	size_t room = 0;

	json_dumpf(o, p->to, JSON_COMPACT);
	fputc('\n', p->to);
	json_decref(o);
	if (fflush(p->to) || getline(&line, &room, p->from) < 0) {
		free(line);
		return NULL;
	}
	o = json_loads(line, 0, NULL);
	free(line);
	return o;
}

/* The structured content of a tool's answer. */
static inline json_t *peer_call(struct peer *p, const char *tool, json_t *arguments)
{
	json_t *o = peer_ask(p, "tools/call",
			     json_pack("{s:s, s:o}", "name", tool, "arguments", arguments));
	json_t *found =
		json_incref(json_object_get(json_object_get(o, "result"), "structuredContent"));

	json_decref(o);
	return found;
}

/* Returns its exit code. */
static inline int peer_close(struct peer *p)
{
	int status = 0;

	fclose(p->to);
	waitpid(p->pid, &status, 0);
	fclose(p->from);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

#endif
