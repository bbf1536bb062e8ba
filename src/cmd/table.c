#include "cmd/command.h"
#include "core/role.h"

const struct command *const commands[] = {
#define COMMAND(name, local) &cmd_##name,
#include "cmd/commands.def"
	NULL
};

enum role command_role(const struct command *c)
{
	static const struct {
		const struct command *command;
		enum role role;
	} several[] = {
#define SEVERAL(command, role) { &cmd_##command, ROLE_##role },
#include "core/op.def"
	};

	for (size_t i = 0; i < sizeof(several) / sizeof(*several); i++)
		if (several[i].command == c)
			return several[i].role;
	return role_for_op(c->op);
}

const char *command_local(const struct command *c)
{
	static const char *const local[] = {
#define COMMAND(name, local) local,
#include "cmd/commands.def"
	};
	size_t i = 0;

	while (commands[i] != c)
		i++;
	return local[i];
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
