/*
 * Asks a person whether to trust a config. The question and its answer go through /dev/tty, so that neither a pipe nor a
 * redirection can answer, and text that was typed before the question does not count. A coding agent that pawl
 * recognises is refused. A program with the user's own rights can still get around this: it can make a terminal.
 */
#include <fcntl.h>
#include <termios.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/text.h"
#include "client/caller.h"
#include "face/cli/cli.h"

/* The file comes first, and the lines that need trust last: a long file cannot push them off the screen. */
static void show_config(int tty, const struct trust *t, struct arena *a)
{
	struct str rest = t->text;
	struct buf b = BUF_MAX(1 << 20);
	int line = 0;

	buf_addf(
		&b,
		"pawl: this config may have come with a clone, and nobody has trusted it yet.\n\n%s:\n",
		arena_cstr(a, text_line(a, str_c(t->config))));
	while (rest.n) {
		buf_addf(&b, "%6d  ", ++line);
		text_visible(&b, str_cut(&rest, '\n'), false);
		buf_addc(&b, '\n');
	}
	buf_addf(&b, "\nIt asks for your trust with\n  %s\nTrust it? [y/N] ",
		 arena_cstr(a, trust_reasons(t, "\n  ", a)));
	(void)fs_write_all(tty, buf_str(&b));
	buf_free(&b);
}

bool consent_read(int tty)
{
	char word[16];
	ssize_t n = read(tty, word, sizeof(word));

	return n > 0 && (word[0] == 'y' || word[0] == 'Y');
}

enum result consent_ask(const struct trust *t, struct answer *ans, struct arena *a)
{
	struct str why;
	bool yes;
	int tty;

	if (caller_is_agent(&why, a))
		return trust_refuse(why, ans, a);
	tty = open("/dev/tty", O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (tty < 0)
		return trust_refuse(STR("this call has no terminal"), ans, a);
	(void)tcflush(tty, TCIFLUSH);
	show_config(tty, t, a);
	yes = consent_read(tty);
	close(tty);
	return yes ? SUCCESS : trust_check(t, ans, a);
}
