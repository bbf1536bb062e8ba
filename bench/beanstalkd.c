/*
 * beanstalkd with a log that is synced at every write (-b DIR -f0). It has no tokens, fences or
 * states: a job is reserved, and deleted.
 */
#include <arpa/inet.h>
#include <inttypes.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bench.h"

static FILE *in;
static int server = -1;
static long long job;

static void bean_open(const char *port)
{
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_port = htons((uint16_t)bench_number(port)),
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int on = 1;

	server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (server < 0 || connect(server, (struct sockaddr *)&at, sizeof(at)))
		bench_die("beanstalkd: nobody listens at port %s", port);
	setsockopt(server, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	in = fdopen(server, "r");
}

static void bean_close(void)
{
	fclose(in);
}

static void say(const char *text)
{
	if (write(server, text, strlen(text)) != (ssize_t)strlen(text))
		bench_die("beanstalkd: the connection broke");
}

static const char *hear(void)
{
	static char line[256];

	if (!fgets(line, sizeof(line), in))
		bench_die("beanstalkd: the connection broke");
	return line;
}

static void bean_fill(int64_t from, int64_t n, int priority)
{
	char text[100], body[64];

	for (int64_t i = from + 1; i <= from + n; i++) {
		snprintf(body, sizeof(body), "Task number %" PRId64, i);
		snprintf(text, sizeof(text), "put %d 0 900 %zu\r\n%s\r\n", priority, strlen(body),
			 body);
		say(text);
		if (strncmp(hear(), "INSERTED", 8))
			bench_die("beanstalkd: put failed");
	}
}

static int bean_take(void)
{
	int size;

	say("reserve-with-timeout 0\r\n");
	if (sscanf(hear(), "RESERVED %lld %d", &job, &size) != 2)
		return 0;
	hear();
	return 1;
}

static int bean_done(void)
{
	char text[64];

	snprintf(text, sizeof(text), "delete %lld\r\n", job);
	say(text);
	return !strncmp(hear(), "DELETED", 7);
}

const struct contender contender_beanstalkd = {
	.name = "beanstalkd",
	.create = bean_open,
	.open = bean_open,
	.close = bean_close,
	.fill = bean_fill,
	.take = bean_take,
	.done = bean_done,
};
