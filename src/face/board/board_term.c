/*
 * Takes the terminal and gives it back, also after a signal or a fault of the program. A signal
 * handler may not call ncurses, so the bytes that restore the terminal are prepared when it is
 * taken.
 */
#include <curses.h>
#include <langinfo.h>
#include <locale.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <term.h>
#include <termios.h>
#include <unistd.h>

#include "base/os.h"
#include "face/board/board_term.h"

#define MOUSE_OFF "\033[?1006;1000l" /* as ncurses turns it on; terminfo has no name for it */

static struct termios before;
static char leave[256]; /* the bytes that restore the terminal, for a signal handler */
static SCREEN *screen;
static int ends[2] = { -1, -1 };
static volatile sig_atomic_t signal_seen;
static volatile sig_atomic_t taken; /* the terminal is not in its normal mode */

/* Calls only functions that a signal handler may call; endwin() is not one of them. */
static void board_term_restore(void)
{
	if (!taken)
		return;
	taken = 0;
	(void)!write(STDOUT_FILENO, leave, strlen(leave));
	(void)tcsetattr(STDIN_FILENO, TCSANOW, &before);
}

/* The first signal ends the loop, which cleans up. A second one does not wait for a store that
 * hangs. */
static void on_signal(int number)
{
	if (signal_seen) {
		board_term_restore();
		_exit(128 + number);
	}
	signal_seen = number;
	(void)!write(ends[1], "", 1);
}

/* After a fault in the program the terminal stays usable. SA_RESETHAND lets the signal end the
 * process. */
static void on_fault(int number)
{
	board_term_restore();
	raise(number);
}

static void board_term_handle(int number, void (*handler)(int), int flags)
{
	struct sigaction sa = { .sa_handler = handler, .sa_flags = flags };

	sigemptyset(&sa.sa_mask);
	sigaction(number, &sa, NULL);
}

static void catch_all(void)
{
	static const int asks[] = { SIGHUP, SIGINT, SIGTERM, SIGQUIT },
			 faults[] = { SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL };

	for (size_t i = 0; i < sizeof(asks) / sizeof(*asks); i++)
		board_term_handle(asks[i], on_signal, 0);
	for (size_t i = 0; i < sizeof(faults) / sizeof(*faults); i++)
		board_term_handle(faults[i], on_fault, (int)SA_RESETHAND);
}

static void add_text(const char *text)
{
	size_t n = strlen(leave);

	if (n + strlen(text) < sizeof(leave))
		snprintf(leave + n, sizeof(leave) - n, "%s", text);
}

static void add_leave(const char *name)
{
	const char *text = tigetstr(name);

	if (text && text != (char *)-1)
		add_text(text);
}

static void start_colors(bool color)
{
	if (!color || !has_colors())
		return;
	start_color();
	use_default_colors();
	for (short i = 1; i < 8; i++)
		init_pair(i, i, -1);
}

/* Tasks have UTF-8 texts, even if the user's locale is C. */
static void set_locale(void)
{
	setlocale(LC_CTYPE, "");
	if (strcmp(nl_langinfo(CODESET), "UTF-8") != 0)
		setlocale(LC_CTYPE, "C.UTF-8");
}

bool term_open(bool color)
{
	if (tcgetattr(STDIN_FILENO, &before) || os_pipe(ends))
		return false;
	set_locale();
	use_tioctl(TRUE); /* an exported COLUMNS does not change with a resize */
	screen = newterm(NULL, stdout, stdin);
	if (!screen)
		return false;
	leave[0] = '\0';
	add_leave("sgr0");
	add_leave("rmcup");
	add_leave("cnorm");
	if (tigetstr("kmous") && tigetstr("kmous") != (char *)-1)
		add_text(MOUSE_OFF);
	taken = 1;
	atexit(board_term_restore);
	catch_all();
	cbreak();
	noecho();
	nonl();
	keypad(stdscr, TRUE);
	nodelay(stdscr, TRUE);
	set_escdelay(50);
	curs_set(0);
	start_colors(color);
	return true;
}

/* Without an interval, ncurses reports a press at once; board_keys.c recognises a double click by its
 * time. */
void term_mouse(bool on)
{
	mmask_t all = BUTTON1_PRESSED | BUTTON1_CLICKED | BUTTON1_DOUBLE_CLICKED |
		      BUTTON1_TRIPLE_CLICKED | BUTTON4_PRESSED | BUTTON5_PRESSED;

	mouseinterval(0);
	mousemask(on ? all : 0, NULL);
}

void term_leave(void)
{
	def_prog_mode();
	endwin();
}

void term_return(void)
{
	reset_prog_mode();
	curs_set(0);
	clearok(stdscr, TRUE);
	refresh();
}

void term_close(void)
{
	endwin();
	taken = 0;
	delscreen(screen);
	close(ends[0]);
	close(ends[1]);
}

int term_end_fd(void)
{
	return ends[0];
}

int term_signal(void)
{
	return signal_seen;
}
