/* claims DIR N: claims N tasks b1, b2, … of the queue in DIR through libpawl, one call for each. bench/instructions
 * compiles it against each build. */
#include <stdio.h>
#include <stdlib.h>

#include <pawl.h>

int main(int argc, char **argv)
{
	struct pawl_options options = PAWL_OPTIONS;
	struct pawl_lock *lock;
	struct pawl *queue;
	char id[32];

	if (argc < 3)
		return 2;
	options.dir = argv[1];
	options.agent = "library";
	if (pawl_open(&queue, &options, NULL))
		return 1;
	for (long i = 1; i <= strtol(argv[2], NULL, 10); i++) {
		snprintf(id, sizeof(id), "b%ld", i);
		if (pawl_claim(queue, id, NULL, &lock)) {
			fprintf(stderr, "%s\n", pawl_message(queue));
			return 1;
		}
		pawl_lock_free(lock);
	}
	pawl_close(queue);
	return 0;
}
