#include "cmd/command.h"

const struct command *const commands[] = {
#define COMMAND(name, role, local) &cmd_##name,
#include "cmd/commands.def"
#undef COMMAND
	NULL
};

static const struct {
	enum role role;
	const char *local;
} network[] = {
#define COMMAND(name, role, local) { ROLE_##role, local },
#include "cmd/commands.def"
#undef COMMAND
};

static size_t index_of(const struct command *c)
{
	size_t i = 0;

	while (commands[i] != c)
		i++;
	return i;
}

enum role command_role(const struct command *c)
{
	return network[index_of(c)].role;
}

const char *command_local(const struct command *c)
{
	return network[index_of(c)].local;
}

const struct command_group command_groups[] = { { "plan", "plan the work" },
						{ "work", "do the work" },
						{ "review", "review, decide and unblock" },
						{ "look", "look at the queue" },
						{ "data", "import, export and back up tasks" },
						{ "locks", "manage locks" },
						{ "setup", "set up, check and learn" },
						{ 0 } };

const char *command_family(const char *word)
{
	static const char *const families[][2] = {
		{ "lock", "manage locks; the status of the task stays" },
		{ "emergency", "make the queue read-only in an emergency" },
		{ "config", "show and change settings" },
		{ "id", "ids from the queue's counter" },
		{ "token", "tokens of callers over the network" },
		{ "batch", "change many tasks in one commit" },
	};

	for (size_t i = 0; i < sizeof(families) / sizeof(*families); i++)
		if (!strcmp(families[i][0], word))
			return families[i][1];
	return "several commands";
}
