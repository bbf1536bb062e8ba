/* term: takes the terminal and gives it back, whatever ends the process. */
#ifndef FACE_BOARD_BOARD_TERM_H
#define FACE_BOARD_BOARD_TERM_H

#include <stdbool.h>

/* false: the terminal cannot show a board. */
bool term_open(bool color);
void term_close(void);
/* Takes the mouse, or leaves it to the terminal. */
void term_mouse(bool on);
/* Call them around a program that uses the terminal itself. */
void term_leave(void);
void term_return(void);
/* A descriptor that becomes readable when a signal asks the process to end; -1: none. */
int term_end_fd(void);
/* The signal that asked the process to end; 0: none. */
int term_signal(void);

#endif
