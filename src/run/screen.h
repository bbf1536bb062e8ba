/*
 * screen: a block of lines at the bottom of the terminal, and the lines that scroll above it.
 *
 * It uses no raw mode and no alternate screen. Between two calls the cursor is at the start of the line below the block,
 * so the terminal is usable even if this process is killed. A terminal that takes no output (^S) does not block the
 * caller: the text waits here, and screen_full() asks the caller to bring no more.
 */
#ifndef RUN_SCREEN_H
#define RUN_SCREEN_H

#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"

struct screen;

/* NULL if standard error is not a terminal that can move its cursor. */
struct screen *screen_open(void);
/* Removes the block and writes the rest of the text. hurry: gives up if the terminal does not take it soon. */
void screen_close(struct screen *s, bool hurry);

/* The text that appears above the block at the next screen_show(). Add only whole lines, and only harmless ones. */
struct buf *screen_text(struct screen *s);
/* Adds a message of pawl above the block. */
void screen_say(struct screen *s, struct str text);
bool screen_full(const struct screen *s);

/* The size of the terminal now. */
void screen_size(const struct screen *s, size_t *columns, size_t *rows);
/* Is it time for screen_show()? */
bool screen_due(const struct screen *s, int64_t now);
/* Writes the new text and the block if one of them changed. Each line of the block is narrower than the terminal. */
void screen_show(struct screen *s, struct strs block, int64_t now);
/* The next time for screen_show(); 0: when there is new text. ticking: the block changes with time. */
int64_t screen_next(const struct screen *s, bool ticking);
/* A descriptor to wait for until it takes output, then call screen_show(); -1: no output waits. */
int screen_waits_for(const struct screen *s);

/* Removes the block, because another process is about to use the terminal. */
void screen_hide(struct screen *s);
/* Another process has used the terminal: the old block stays where it is. */
void screen_forget(struct screen *s);
/* Shows the block again at the next chance: the terminal has a new size. */
void screen_resized(struct screen *s);

#endif
