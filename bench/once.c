/* once PATH ID: the bare claim as a program of its own, the baseline for pawl's process start. */
#include "bench.h"

int main(int argc, char **argv)
{
	int got;

	if (argc != 3)
		bench_die("usage: once PATH ID");
	contender_bare.open(argv[1]);
	bare_short_wal(argv[1]);
	got = contender_bare.claim(argv[2]);
	contender_bare.close();
	return got ? 0 : 20;
}
