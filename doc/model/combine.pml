/*
 * The shared commit: 3 processes, one gate, one store. README.md here lists the omissions, the
 * bounds, and which mutation trips which property. Run: tools/check-model
 *
 * The steps are those of src/store/local/combine.c, batch.c and sqlite/change.c. They are
 * coarser where that keeps the search small: all slots are taken in one step, and a reply is
 * written together with its batch's number.
 */
#define N 3
#ifndef CALLS
#define CALLS 1 /* of each process */
#endif
#ifndef DEATHS
#define DEATHS 0
#endif
#ifndef TIMEOUTS
#define TIMEOUTS 0 /* calls that their owners give up */
#endif
#ifndef FAULTS
#define FAULTS 0 /* commits that fail, or whose outcome the holder does not know */
#endif

/* Properties, by letter as in README.md; -DONLY=n checks one alone. */
#ifndef ONLY
#define ONLY 0
#endif
#define PROPERTY(n, x) assert((ONLY != 0 && ONLY != n) || (x))
#define ONCE 1	 /* (a) */
#define DURABLE 2 /* (b) */
#define ANSWER 3 /* (c) */
#define TRUTH 4	 /* (d) */

#define IDLE 0
#define PENDING 1
#define NUDGED 2
#define TAKEN 3
#define DONE 4

#ifdef TWO_QUEUES
#define QUEUE(p) (p == 2 -> 1 : 0)
#else
#define QUEUE(p) 0
#endif
#ifdef ONE_ROW
#define ROW(p) 0
#else
#define ROW(p) QUEUE(p)
#endif

byte gate; /* its holder, from 1; 0: free */

/* The slots. st and gen are one word: they change together. */
byte st[N], gen[N], text[N], reply[N], batch[N];
bool flag[N];   /* the flag `sleeping` */
bool asleep[N]; /* in the kernel */

/* The store. */
byte last[2];

byte batches, deaths = DEATHS, timeouts = TIMEOUTS, faults = FAULTS;
bool killed[N];

/* Ghosts. Calls count from 1. */
byte applied[N * CALLS + 1];
bool told_n[N * CALLS + 1];

#define WAITS(p) (st[p] == PENDING || st[p] == NUDGED)
#define ANY_WAITS \
	(WAITS(0) && QUEUE(0) == QUEUE(me) || WAITS(1) && QUEUE(1) == QUEUE(me) || \
	 WAITS(2) && QUEUE(2) == QUEUE(me))
#define SERVED 255 /* replaces the process's own call once it was made */
#define ALONE 254  /* replaces a reply: the owner must make the call itself */
#ifdef TWICE
#define SERVE skip
#else
#define SERVE own = SERVED
#endif
#define WAKE(p) asleep[p] = false

/* Only a slot that still has the generation that was taken. */
#ifdef ANY_GENERATION
#define STILL(p) (st[p] != IDLE)
#else
#define STILL(p) (st[p] == TAKEN && gen[p] == tg[p])
#endif

#define EACH i = 0; do :: i == N -> i = 0; break :: i < N ->
#define HCAE i++ od

/* Look and compare-and-exchange are one step: if the word changes in between, the slot is
 * skipped. */
#define TAKE(p) \
	if \
	:: QUEUE(p) == QUEUE(me) && st[p] == TAKEN -> tc[p] = 1; tg[p] = gen[p]; tb[p] = batch[p] \
	:: QUEUE(p) == QUEUE(me) && WAITS(p) -> \
		tc[p] = 1; tb[p] = 0; st[p] = TAKEN; tg[p] = gen[p]; FRESH(p) \
	:: else \
	fi
#ifdef OLD_BATCH
#define FRESH(p) skip
#else
#define FRESH(p) batch[p] = 0
#endif

#define COPY(p) \
	if \
	:: tc[p] != 0 && STILL(p) -> tc[p] = text[p] \
	:: else -> tc[p] = 0; tb[p] = 0 \
	fi

#if defined(BELIEVE)
#define COMMITTED(p) (tb[p] != 0)
#elif defined(NO_BATCH_CHECK)
#define COMMITTED(p) false
#else
#define COMMITTED(p) (tb[p] != 0 && tb[p] == last[ROW(me)])
#endif

#define REPLY(p) \
	if \
	:: tc[p] != 0 && !COMMITTED(p) && STILL(p) -> reply[p] = tc[p]; batch[p] = mine \
	:: else \
	fi

/* Answers the slots for which `which` is true; the owner of one may be about to sleep. */
#define ANSWER_ALL(which) \
	do \
	:: atomic { i < N && !(tc[i] != 0 && which) -> i++ } \
	:: atomic { i < N && tc[i] != 0 && which -> \
		if \
		:: STILL(i) -> st[i] = DONE \
		:: else \
		fi; \
		THEN_WAKE \
		if \
		:: flag[i] -> WAKE(i) \
		:: else \
		fi; \
		tc[i] = 0; tb[i] = 0; tg[i] = 0; i++ } \
	:: atomic { i == N -> i = 0; break } \
	od

#ifdef NO_NAPS
#define THEN_WAKE }; atomic {
#else
#define THEN_WAKE
#endif

#define APPLY(call) \
	applied[call]++; \
	PROPERTY(ONCE, applied[call] == 1); \
	PROPERTY(TRUTH, !told_n[call])

#define COMMIT \
	EACH if :: tc[i] != 0 -> APPLY(tc[i]) :: else fi; HCAE; \
	if \
	:: own != 0 && own != SERVED -> APPLY(own) \
	:: else \
	fi; \
	if \
	:: mine != 0 -> last[ROW(me)] = mine \
	:: else \
	fi

/* The holder failed before its commit: no call was made. */
#ifdef FAULT_AS_DONE
#define SEND_AWAY(p) skip
#else
#define SEND_AWAY(p) \
	if \
	:: tc[p] != 0 && STILL(p) -> reply[p] = ALONE; batch[p] = 0 \
	:: else \
	fi
#endif

/* After the gate was left. The scan begins anywhere. With naps it only saves time. */
#ifndef NO_NAPS
#define NUDGE \
	atomic { \
		if \
		:: WAITS(0) -> st[0] = NUDGED \
		:: WAITS(1) -> st[1] = NUDGED \
		:: WAITS(2) -> st[2] = NUDGED \
		:: !WAITS(0) && !WAITS(1) && !WAITS(2) \
		fi }
#else
#define NUDGE \
	atomic { \
		if \
		:: i = 0 \
		:: i = 1 \
		:: i = 2 \
		fi; \
		left = N }; \
	do \
	:: atomic { left > 0 && WAITS(i) -> st[i] = NUDGED; WAKE(i); left = 0; i = 0; break } \
	:: atomic { left > 0 && !WAITS(i) -> i = (i + 1) % N; left-- } \
	:: atomic { left == 0 -> i = 0; break } \
	od
#endif

#define FORGET \
	own = 0; i = 0; left = 0; seen = 0; mine = 0; c = 0; \
	tc[0] = 0; tc[1] = 0; tc[2] = 0; tg[0] = 0; tg[1] = 0; tg[2] = 0; tb[0] = 0; tb[1] = 0; tb[2] = 0

proctype process(byte me)
{
	byte n, c, own, i, left, seen, mine;
	/* the calls taken: call, generation, batch if its outcome is unknown */
	byte tc[N], tg[N], tb[N];
	bool born;

begin:
	{
	skip;
next:
	atomic {
		FORGET;
		if
		:: n == CALLS -> goto finished
		:: else -> c = me * CALLS + n + 1
		fi };
	if
	:: atomic { gate == 0 -> gate = me + 1; own = c; goto lead }
	:: gate != 0
	fi;
	atomic { /* perhaps the slot of a dead process */
		if
		:: born
		:: else -> st[me] = IDLE; gen[me]++; born = true
		fi;
		text[me] = c };
	atomic { st[me] = PENDING; gen[me]++; flag[me] = false };
#ifdef GATE_FIRST
	goto look;
#endif

try:
	if
	:: atomic { gate == 0 -> gate = me + 1; goto lead }
	:: gate != 0
	fi;

look:
	atomic {
		seen = st[me];
		if
		:: seen == DONE -> goto result
		:: seen == NUDGED -> st[me] = PENDING; goto try
		:: seen == PENDING || seen == TAKEN
		:: timeouts > 0 && seen != DONE -> timeouts--; goto give_up
		fi };
#ifndef NO_NAPS
	goto try; /* a nap may be arbitrarily short */
#endif
	flag[me] = true;
	atomic {
		if
		:: st[me] == seen -> asleep[me] = true
		:: else
		fi };
	!asleep[me];
	atomic {
		flag[me] = false;
		if
		:: st[me] == seen -> goto try
		:: else -> goto look
		fi };

give_up:
	atomic {
		if
		:: st[me] == DONE -> goto result
		:: st[me] == TAKEN -> skip
		:: else -> PROPERTY(TRUTH, applied[c] == 0); told_n[c] = true
		fi;
		st[me] = IDLE; gen[me]++; n++;
		goto next };

alone: /* in the kernel's queue, with its own call */
	atomic { gate == 0 -> gate = me + 1; own = c; goto lead };

result:
	atomic {
		if
		:: reply[me] == ALONE -> reply[me] = 0; goto alone
		:: else
		fi;
		PROPERTY(ANSWER, reply[me] == c);
		PROPERTY(DURABLE, applied[c] == 1);
		n++;
		goto next };

lead:
#ifdef TAKE_IDLE
	/* a slot that was seen waiting is taken in any state that it has by then */
	atomic { EACH if :: WAITS(i) -> tb[i] = 1 :: else fi; HCAE };
	atomic { EACH if :: tb[i] == 1 && st[i] != TAKEN -> st[i] = PENDING :: else fi; tb[i] = 0; HCAE };
#endif
	atomic { EACH TAKE(i); HCAE };
	atomic { EACH COPY(i); HCAE };
	ANSWER_ALL(COMMITTED(i)); /* calls that dead processes left */
	atomic {
		if
		:: tc[0] != 0 || tc[1] != 0 || tc[2] != 0 -> batches++; mine = batches
		:: else
		fi };
#ifndef REPLY_LATE
	atomic { EACH REPLY(i); HCAE };
#endif
#ifdef ANSWER_FIRST
	ANSWER_ALL(true);
#endif
	atomic { /* the commit */
		if
		:: faults > 0 -> faults--; goto failed
#ifndef NO_NAPS
		:: faults > 0 -> faults--; goto unsure
		:: faults > 0 -> faults--; COMMIT; goto unsure
#endif
		:: COMMIT
		fi };
#ifdef REPLY_LATE
	atomic { EACH REPLY(i); HCAE };
#endif
	ANSWER_ALL(true);
	atomic { /* the holder may stay and serve calls that came meanwhile */
		if
		:: skip
		:: ANY_WAITS ->
			if
			:: own != 0 -> SERVE
			:: else
			fi;
			mine = 0;
			goto lead
		fi };
#ifdef NUDGE_FIRST
	NUDGE;
	gate = 0;
#elif defined(NO_NUDGE)
	gate = 0;
#else
	gate = 0;
	NUDGE;
#endif
	atomic {
		if
		:: own != 0 -> n++; goto next
		:: else -> goto look
		fi };

failed:
	atomic { EACH SEND_AWAY(i); HCAE };
	ANSWER_ALL(true);
	atomic { /* the holder's own call alone: it may be made now, or fail again */
		if
		:: own != 0 && own != SERVED -> APPLY(own)
		:: own != 0 && own != SERVED -> told_n[own] = true; PROPERTY(TRUTH, applied[own] == 0)
		:: own == 0 || own == SERVED
		fi };
	gate = 0;
	NUDGE;
	atomic {
		if
		:: own != 0 -> n++; goto next
		:: else -> goto look
		fi };

unsure: /* as if the holder had died, for all but its own caller */
#ifdef UNSURE_AS_FAILED
	goto failed;
#endif
	gate = 0;
	NUDGE;
	atomic {
		if
		:: own != 0 -> n++; goto next
		:: else -> goto give_up
		fi }
	} unless {
		killed[me]
	};

	/* kill -9: another process takes its place, or none */
	atomic {
		FORGET; killed[me] = false; born = false; n++;
		if
		:: n < CALLS -> goto begin
		:: n = CALLS
		fi };
finished:
	skip
}

/* The kernel releases what the dead process held. */
active proctype killer()
{
end:
	do
	:: atomic { deaths > 0 && !killed[0] -> deaths--; killed[0] = true; asleep[0] = false;
		if :: gate == 1 -> gate = 0 :: else fi }
	:: atomic { deaths > 0 && !killed[1] -> deaths--; killed[1] = true; asleep[1] = false;
		if :: gate == 2 -> gate = 0 :: else fi }
	:: atomic { deaths > 0 && !killed[2] -> deaths--; killed[2] = true; asleep[2] = false;
		if :: gate == 3 -> gate = 0 :: else fi }
	od
}

init
{
	atomic { run process(0); run process(1); run process(2) }
}
