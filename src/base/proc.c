#include "base/proc.h"

#include "base/os.h"

/* A boot id that is derived from the boot time changes when someone sets the clock. */
static bool boot_named_well(struct str boot_id)
{
	return boot_id.n && !str_starts(boot_id, STR("btime-")) && !str_is(boot_id, "unknown");
}

struct str proc_here(struct arena *a)
{
	return arena_printf(a, "%s/%s", arena_cstr(a, os_boot_id(a)),
			    arena_cstr(a, os_pid_space(a)));
}

/* Two time namespaces may round the same start to neighbouring ticks. A pid is not reused that
 * soon. */
static bool same_start(int64_t found, int64_t noted)
{
	return noted >= found - 1 && noted <= found + 1;
}

static enum proc_life same_host(struct arena *a, struct str there, int64_t pid, int64_t start)
{
	struct str here = proc_here(a), boot = str_cut(&here, '/'),
		   boot_there = str_cut(&there, '/');
	int64_t found;

	if (!str_eq(boot_there, boot))
		return boot_named_well(boot_there) && boot_named_well(boot) ? PROC_DEAD
									    : PROC_UNKNOWN;
	if (!str_eq(there, here))
		return PROC_UNKNOWN; /* pids of another pid namespace mean nothing here */
	found = os_process_start(pid);
	if (found < 0)
		return PROC_UNKNOWN;
	if (found == 0)
		return PROC_DEAD;
	if (start <= 0)
		return PROC_UNKNOWN;
	return same_start(found, start) ? PROC_ALIVE : PROC_DEAD;
}

enum proc_life proc_life(struct str host, struct str place, int64_t pid, int64_t start)
{
	struct arena a = { 0 };
	enum proc_life life = PROC_UNKNOWN;

	if (host.n && pid > 0 && str_eq(host, os_hostname(&a)))
		life = same_host(&a, place, pid, start);
	arena_free(&a);
	return life;
}
