/* editor: lets a person change a text in the editor of their choice. */
#ifndef RUN_EDITOR_H
#define RUN_EDITOR_H

#include <stdbool.h>

/* $VISUAL, $EDITOR, or vi on a terminal; NULL: there is none. */
const char *editor_name(void);
/* Are standard input and output a terminal? */
bool editor_terminal(void);
/* Runs the editor on the file, through a shell, because the setting may have options. 0 once it has ended, with *status as
 * waitpid() returns it, or -errno. out_to_err: the editor's standard output goes to our standard error. */
int editor_run(const char *editor, const char *path, bool out_to_err, int *status);

#endif
