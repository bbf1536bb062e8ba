/* The line editor of the prompt, built on libedit. It is the only file that calls libedit. */
#include <histedit.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <wchar.h>

#include "base/module.h"
#include "base/text.h"
#include "face/cli/cli.h"

#define LINES_KEPT 1000
#define LIST_MAX 200 /* a longer list does not help */

struct editor {
	EditLine *el;
	History *history;
	const struct editor_host *host;
	bool dropped;
};

static struct editor *editor_of(EditLine *el)
{
	void *e = NULL;

	el_get(el, EL_CLIENTDATA, &e);
	return e;
}

static char *show_prompt(EditLine *el)
{
	return (char *)(uintptr_t)editor_of(el)->host->prompt;
}

/* --- completion ----------------------------------------------------------------------------------- */

/* The length of the common prefix of all candidates. */
static size_t editor_common(struct strs list)
{
	size_t n = list.v[0].n;

	for (size_t i = 1; i < list.n; i++) {
		size_t k = 0;

		while (k < n && k < list.v[i].n && list.v[i].p[k] == list.v[0].p[k])
			k++;
		n = k;
	}
	return n;
}

static size_t editor_columns(void)
{
	struct winsize size;

	return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col ? size.ws_col : 80;
}

static void list_all(struct strs list)
{
	size_t at = 0, wide = editor_columns(), n = list.n < LIST_MAX ? list.n : LIST_MAX;

	for (size_t i = 0; i < n; i++) {
		size_t width = text_width(list.v[i]);
		bool breaks = at && at + 2 + width >= wide;

		tty_print(STDOUT_FILENO, "%s%.*s", !i || breaks ? "\n" : "  ", STRF(list.v[i]));
		at = !at || breaks ? width : at + 2 + width;
	}
	if (n < list.n)
		tty_print(STDOUT_FILENO, "\n… and %zu more", list.n - n);
	tty_print(STDOUT_FILENO, "\n");
}

/* Replaces the typed part of the word, because an id may differ in case. */
static void put_word(EditLine *el, size_t typed, struct str word, bool whole)
{
	struct arena a = { 0 };
	struct str text = arena_printf(&a, "%.*s%s", STRF(word), whole ? " " : "");

	el_deletestr(el, (int)typed);
	el_insertstr(el, text.p);
	arena_free(&a);
}

static unsigned char on_tab(EditLine *el, wint_t ch)
{
	const struct editor *e = editor_of(el);
	const LineInfo *li = el_line(el);
	struct str line = str_n(li->buffer, (size_t)(li->cursor - li->buffer));
	struct arena a = { 0 };
	size_t from = line.n, n;
	struct strs list = e->host->complete(e->host->ctx, line, &from, &a);
	unsigned char done = CC_REFRESH;

	(void)ch;
	n = list.n ? editor_common(list) : 0;
	if (!list.n) {
		done = CC_REFRESH_BEEP;
	} else if (list.n == 1 || n > line.n - from) {
		put_word(el, line.n - from, str_n(list.v[0].p, n), list.n == 1);
	} else {
		list_all(list);
		done = CC_REDISPLAY;
	}
	arena_free(&a);
	return done;
}

/* --- lines ---------------------------------------------------------------------------------------- */

static unsigned char on_interrupt(EditLine *el, wint_t ch)
{
	(void)ch;
	tty_print(STDOUT_FILENO, "^C\n");
	editor_of(el)->dropped = true;
	return CC_NEWLINE;
}

/* Sets a UTF-8 locale; without one, libedit would show the bytes one by one. */
static void set_locale(void)
{
	setlocale(LC_CTYPE, "");
	if (MB_CUR_MAX == 1)
		setlocale(LC_CTYPE, "C.UTF-8");
}

static void set_up(struct editor *e)
{
	HistEvent ev;

	history(e->history, &ev, H_SETSIZE, LINES_KEPT);
	history(e->history, &ev, H_SETUNIQUE, 1);
	el_set(e->el, EL_CLIENTDATA, e);
	el_set(e->el, EL_PROMPT, show_prompt);
	el_set(e->el, EL_EDITOR, "emacs");
	el_set(e->el, EL_SIGNAL, 1);
	el_set(e->el, EL_HIST, history, e->history);
	/* use the wide functions: with narrow ones libedit makes copies and keeps them */
	el_wset(e->el, EL_ADDFN, L"pawl-complete", L"completes a word", on_tab);
	el_wset(e->el, EL_ADDFN, L"pawl-interrupt", L"drops the line", on_interrupt);
	el_set(e->el, EL_SETTY, "-d", "-isig", NULL);
	el_set(e->el, EL_BIND, "^R", "em-inc-search-prev", NULL);
	(void)el_source(e->el, NULL);
	el_set(e->el, EL_BIND, "^I", "pawl-complete", NULL);
	el_set(e->el, EL_BIND, "^C", "pawl-interrupt", NULL);
}

static void editor_close(struct editor *e)
{
	if (e->el)
		el_end(e->el);
	if (e->history)
		history_end(e->history);
	free(e);
}

static struct editor *editor_open(const struct editor_host *host)
{
	struct editor *e = mem_alloc(sizeof(*e));

	*e = (struct editor){ .host = host };
	set_locale();
	e->history = history_init();
	e->el = e->history ? el_init("pawl", stdin, stdout, stderr) : NULL;
	if (!e->el) {
		editor_close(e);
		return NULL;
	}
	set_up(e);
	return e;
}

static enum line_end editor_read(struct editor *e, struct str *out)
{
	int n = 0;
	const char *line;

	e->dropped = false;
	line = el_gets(e->el, &n);
	if (e->dropped)
		return LINE_DROPPED;
	if (!line || n <= 0)
		return LINE_NONE;
	*out = str_n(line, (size_t)n);
	if (out->n && out->p[out->n - 1] == '\n')
		out->n--;
	return LINE_WHOLE;
}

static void editor_remember(struct editor *e, const char *line)
{
	HistEvent ev;

	history(e->history, &ev, H_ENTER, line);
}

static const struct editor_ops ops = { .open = editor_open,
				       .read = editor_read,
				       .remember = editor_remember,
				       .close = editor_close };

extern const struct module pawl_module;
const struct module pawl_module = { .abi = MODULE_ABI, .editor = &ops };
