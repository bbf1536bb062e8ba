/*
 * The loop of the board: waits for keys, for changes of the queue and for the next second. A slow
 * store is read less often: the pause grows with the duration of a read.
 */
#include <errno.h>
#include <poll.h>
#include <unistd.h>

#include "base/module.h"
#include "base/os.h"
#include "base/text.h"
#include "cmd/cmd_modules.h"
#include "face/board/board.h"
#include "face/board/board_term.h"
#include "store/store.h"

#define TICK_MS 1000   /* the time left of each lease is updated */
#define AGAIN_MS 10000 /* a read without a wake-up: a date may have passed */
#define POLL_MS 1000   /* time between two reads if the store cannot wake us */
#define PAUSE_MS 100   /* the least time between two reads */
#define SHARE 3        /* the pause after a slow read, as a multiple of its duration */

struct loop {
	struct session *session;
	struct ui ui;
	struct reader reader;
	struct str place;
	bool stale; /* the queue may have changed since the last read */
};

/* A descriptor that becomes readable when the queue changes; -1: there is none. */
static int wake_fd(const struct loop *l)
{
	return l->session->client.conn.queue ? queue_wake_fd(l->session->client.conn.queue) : -1;
}

static void read_all(struct loop *l)
{
	l->stale = false;
	if (wake_fd(l) >= 0)
		queue_woken(l->session->client.conn.queue);
	read_board(&l->reader, &l->ui);
	read_detail(&l->reader, &l->ui);
}

static void board_edit(struct loop *l)
{
	term_leave();
	edit_draft(&l->reader, &l->ui);
	term_return();
	read_all(l);
}

/* Does what a key asked for. false: leave the board. */
static bool board_obey(struct loop *l, enum effect what)
{
	switch (what) {
	case DO_QUIT:
		return false;
	case DO_CALL:
		send_draft(&l->reader, &l->ui);
		read_all(l);
		return true;
	case DO_EDIT:
		board_edit(l);
		return true;
	case DO_READ:
		read_all(l);
		return true;
	case DO_SHOW:
		read_detail(&l->reader, &l->ui);
		return true;
	case DO_MOUSE:
		term_mouse(l->ui.mouse);
		return true;
	default:
		return true;
	}
}

static bool take_keys(struct loop *l)
{
	uint32_t key;

	while ((key = screen_key()) != K_NONE) {
		struct mouse m = screen_mouse();

		if (!board_obey(l, key == K_MOUSE ? ui_mouse(&l->ui, &m) : ui_key(&l->ui, key)))
			return false;
	}
	return true;
}

/* The time until the next read is allowed. A slow store is read less often. */
static int64_t until_read(const struct loop *l)
{
	int64_t least = l->reader.took * SHARE > PAUSE_MS ? l->reader.took * SHARE : PAUSE_MS;
	int64_t left = l->reader.tried_at + least - os_boot_ms();

	return left > 0 ? left : 0;
}

static bool read_is_due(const struct loop *l)
{
	int64_t most = wake_fd(l) < 0 || l->ui.board.fault[0] ? POLL_MS : AGAIN_MS;

	return until_read(l) == 0 && (l->stale || reader_now(&l->reader) >= l->reader.expires_at ||
				      os_boot_ms() - l->reader.tried_at >= most);
}

/* Waits for a key, a change or the next second. false: the terminal is gone, or a signal asks the
 * process to end. */
static bool wait_for_news(struct loop *l)
{
	int64_t ms = l->stale ? until_read(l) : TICK_MS;
	struct pollfd fds[] = { { .fd = STDIN_FILENO, .events = POLLIN },
				{ .fd = term_end_fd(), .events = POLLIN },
				{ .fd = l->stale ? -1 : wake_fd(l), .events = POLLIN } };
	int n = poll(fds, 3, (int)(ms < TICK_MS ? ms : TICK_MS));

	if (term_signal() || (n > 0 && fds[0].revents & (POLLHUP | POLLERR | POLLNVAL)))
		return false;
	if (n > 0 && fds[2].revents)
		l->stale = true;
	return n >= 0 || errno == EINTR;
}

static void run_loop(struct loop *l)
{
	do {
		if (read_is_due(l))
			read_all(l);
		draw_all(&l->ui, &l->reader, l->place);
	} while (wait_for_news(l) && take_keys(l));
}

/* The watch begins before the first read, so that no change is missed in between. */
static enum result board_run(struct session *s, struct reply *out)
{
	struct loop l = { .session = s, .reader = { .session = s } };

	ui_init(&l.ui, s->client.self.agent);
	l.ui.mouse = str_is(settings_text(&s->client.conn.settings, "board.mouse"), "on");
	l.place = text_line(s->arena, uri_shown(s->arena, s->client.conn.config.uri));
	(void)queue_wake_fd(s->client.conn.queue);
	read_board(&l.reader, &l.ui);
	if (l.ui.board.fault[0])
		return run_fail(l.reader.code, arena_str(s->arena, str_c(l.ui.board.fault)),
				STR("pawl doctor checks the store"), out);
	if (!term_open(s->color))
		return run_fail(MISCONFIGURED, STR("this terminal cannot show the board"),
				STR("set TERM to the name of your terminal, e.g. TERM=xterm"), out);
	term_mouse(l.ui.mouse);
	run_loop(&l);
	term_close();
	reader_free(&l.reader);
	out->silent = true;
	s->exit_code = term_signal() ? 128 + term_signal() : 0;
	return SUCCESS;
}

static const struct board_ops ops = { .run = board_run };

extern const struct module pawl_module;
const struct module pawl_module = { .abi = MODULE_ABI, .board = &ops };
