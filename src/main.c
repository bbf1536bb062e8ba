#include "face/cli/cli.h"

#ifdef __GLIBC__
#include <malloc.h>
#endif

int main(int argc, char **argv)
{
#ifdef __GLIBC__
	/* otherwise glibc keeps the memory of the first large text that is freed */
	mallopt(M_MMAP_THRESHOLD, 128 * 1024);
#endif
	return cli_main(argc, argv);
}
