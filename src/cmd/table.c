#include "cmd/command.h"

const struct command *const commands[] = {
#define COMMAND(name) &cmd_##name,
#include "cmd/commands.def"
#undef COMMAND
	NULL
};

const struct command_group command_groups[] = { { "plan", "plan the work" },
						{ "work", "do the work" },
						{ "review",
						  "decide as a reviewer or a person in charge" },
						{ "look", "look" },
						{ "data", "move tasks in and out" },
						{ "locks", "locks by themselves" },
						{ "setup", "set up and find out" },
						{ 0 } };

const char *command_family(const char *word)
{
	static const char *const families[][2] = {
		{ "lock", "locks, whatever the status of the task" },
		{ "emergency", "nobody changes anything, until it is over" },
		{ "config", "settings, and where each comes from" },
		{ "id", "ids from the queue's counter" },
		{ "batch", "many tasks in one commit" },
	};

	for (size_t i = 0; i < sizeof(families) / sizeof(*families); i++)
		if (!strcmp(families[i][0], word))
			return families[i][1];
	return "several commands";
}
