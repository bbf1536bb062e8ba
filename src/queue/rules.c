/* The policy that stores need. A store must not call core itself. */
#include "core/counts.h"
#include "core/lease.h"
#include "core/order.h"
#include "queue/queue.h"

const struct store_rules queue_rules = {
	.index = order_index,
	.sub_moved = graph_sub_moved,
	.dep_moved = graph_dep_moved,
	.lock_gone = lease_clear,
};
