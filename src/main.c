/* The entry point of pawl: sets up malloc() and calls the command line. */
#include "face/cli/cli.h"

#ifdef __GLIBC__
#include <malloc.h>
#endif

int main(int argc, char **argv)
{
#ifdef __GLIBC__
	/* a fixed threshold, because glibc would raise it and then keep the memory of large texts
	 * after free() */
	mallopt(M_MMAP_THRESHOLD, 128 * 1024);
#endif
	return cli_main(argc, argv);
}
