/*
 * timespace: the distance of this process's boot-time clock from the machine's.
 *
 * A container may have a time namespace. It shifts CLOCK_BOOTTIME and the start times in /proc by a
 * fixed offset, while the boot id is the same for all. Processes that share a store must agree on
 * the time, so each subtracts the offset (os_boot_ms, os_process_start). This costs one readlink
 * for each process.
 */
#ifndef BASE_TIMESPACE_H
#define BASE_TIMESPACE_H

#include <stdbool.h>
#include <stdint.h>

/* In nanoseconds; 0 outside of such a namespace, or if its offset cannot be read. */
int64_t timespace_offset(void);
/* false: this process is in a time namespace whose offset cannot be read. */
bool timespace_known(void);
/* Makes the next call look again: for tests. */
void timespace_forget(void);

#endif
