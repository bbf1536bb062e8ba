/*
 * pawl's leases: 3 agents, 2 tasks, one store. README.md here lists the omissions, the bounds, and
 * which mutation trips which property. Run: tools/check-model
 *
 * The rules are those of src/core: LIVE, claim: lease.c, acquire.c; repeat, own, done, release,
 * heartbeat: rules.c. One store_* step is one transaction of a store.
 */
#define AGENTS 3
#define TASKS 2
#ifndef TTL
#define TTL 1 /* ticks of a lease; with 1, a heartbeat changes nothing, as intended */
#endif
#ifndef FAULTS
/* in total: leases that expire on a living agent, crashes, releases, late requests */
#define FAULTS 3
#endif

/* Properties, by letter as in README.md; -DONLY=n checks one alone. */
#ifndef ONLY
#define ONLY 0
#endif
#define PROPERTY(n, x) assert((ONLY != 0 && ONLY != n) || (x))
#define ONE_HOLDER 1	 /* (a) */
#define FENCE_GROWS 2	 /* (b) */
#define ONE_COMPLETION 3 /* (c) */
#define STALE_IS_NOTHING 4 /* (d) */
#define DONE_STAYS 5	 /* (e) */
#define NOT_LOST 6	 /* (f), with pan's own check of end states, and the LTL formula below */
#define WORK_IS_OF_FENCE 7 /* (g) */
#define SAME_ANSWER 8	 /* (h) */

/* status; 0 is a task that nobody has begun */
#define READY 0
#define IN_PROGRESS 1
#define DONE 2

/* operations; for an agent also its next step */
#define NONE 0
#define CLAIM 1
#define WORK 2
#define HEARTBEAT 3
#define RELEASE 4
#define COMPLETE 5
#define DEAD 6

/* answers */
#define OK 1
#define CONFLICT 2
#define LOST_LOCK 3

/* The store. left is expires_at - now, at least 0: only the order of the two matters. */
byte status[TASKS], tok[TASKS], left[TASKS], fence[TASKS], last_op[TASKS], last_tok[TASKS];

/* The agents' memory: the token of the present attempt, 0 for none. */
byte mine[AGENTS];

/* One request that its sender has given up and that is still under way. */
byte late_op, late_task, late_tok, late_fence;

byte faults = FAULTS;

/* Ghosts: the truth, independent of the store's rules. */
byte g_lease[TASKS];	/* the token of the granted lease that has not ended */
byte g_fence[TASKS];	/* at the last acquisition */
byte g_completed[TASKS];/* the fence of the last accepted completion */
byte g_op[TASKS], g_op_tok[TASKS]; /* the last change by a holder, until the next acquisition */
bool g_acked[TASKS];	/* an agent was told that its completion was accepted */
/* the highest fence under which work was done outside, where lower ones are refused */
byte g_outside[TASKS];

#if defined(EXPIRY_WRONG_WAY)
#define LIVE(t) (tok[t] != 0 && left[t] == 0)
#elif defined(NO_EXPIRY)
#define LIVE(t) (tok[t] != 0)
#else
#define LIVE(t) (tok[t] != 0 && left[t] > 0)
#endif

/* The token is the proof. (FENCE_SENT: each call also carries the fence that it was granted.) */
#if defined(NO_FENCE_CHECK)
#define OWNED(t, k, f) true
#elif defined(FENCE_SENT)
#define OWNED(t, k, f) (LIVE(t) && tok[t] == k && fence[t] == f)
#else
#define OWNED(t, k, f) (LIVE(t) && tok[t] == k)
#endif

#ifdef HEARTBEAT_REVIVES
#define MAY_RENEW(t, k, f) (tok[t] == k)
#else
#define MAY_RENEW(t, k, f) OWNED(t, k, f)
#endif

#define DID(t, op, k) (last_op[t] == op && last_tok[t] == k)
#ifdef NO_REPEAT_CHECK
#define OWN_CLAIM(t, k) false
#else
#define OWN_CLAIM(t, k) (LIVE(t) && tok[t] == k)
#endif
#if defined(NO_REPEAT_CHECK) || defined(APPLIED_TWICE)
#define REPEAT(t, op, k) false
#else
#define REPEAT(t, op, k) DID(t, op, k)
#endif

#ifdef APPLIED_TWICE
#define MUST_REFUSE(t, op, k, f) (!OWNED(t, k, f) && !DID(t, op, k))
#else
#define MUST_REFUSE(t, op, k, f) (!OWNED(t, k, f) || status[t] != IN_PROGRESS)
#endif

#if defined(NO_TAKEOVER)
#define CLAIM_FROM(t) (status[t] == READY)
#elif defined(DONE_CLAIMABLE)
#define CLAIM_FROM(t) true
#else
#define CLAIM_FROM(t) (status[t] != DONE)
#endif

#define CLAIMABLE(t) (CLAIM_FROM(t) && !LIVE(t))

#ifdef CHECK_THEN_ACT
#define HELD(t) false /* the caller has checked before */
#else
#define HELD(t) LIVE(t)
#endif

/* MUST_OWN: for every change under a token. STANDS: holds after every change. */
#define MUST_OWN(t, k) PROPERTY(STALE_IS_NOTHING, g_lease[t] == k)
#define STANDS(t) \
	PROPERTY(DONE_STAYS, !g_acked[t] || status[t] == DONE); \
	PROPERTY(NOT_LOST, status[t] == DONE || g_lease[t] != 0 || CLAIMABLE(t))

inline store_claim(t, k, r)
{
	if
	:: OWN_CLAIM(t, k) -> r = OK
	:: else ->
		if
		:: !CLAIM_FROM(t) || HELD(t) -> r = CONFLICT
		:: else ->
			PROPERTY(ONE_HOLDER, g_lease[t] == 0);
#ifdef FENCE_KEPT
			fence[t] = (fence[t] == 0 -> 1 : fence[t]);
#else
			fence[t]++;
#endif
			status[t] = IN_PROGRESS; tok[t] = k; left[t] = TTL;
			last_op[t] = NONE; last_tok[t] = 0;
			PROPERTY(FENCE_GROWS, fence[t] == g_fence[t] + 1);
			g_fence[t] = fence[t]; g_lease[t] = k; g_op[t] = NONE; g_op_tok[t] = 0;
			r = OK
		fi
	fi;
	STANDS(t)
}

inline store_heartbeat(t, k, f, r)
{
	if
	:: MAY_RENEW(t, k, f) -> MUST_OWN(t, k); left[t] = TTL; r = OK
	:: else -> r = LOST_LOCK
	fi;
	STANDS(t)
}

/* done and release: the holder's last change; the lock is cleared, the fence stays */
inline store_finish(t, op, k, f, to, r)
{
	if
	:: REPEAT(t, op, k) -> r = OK
	:: else ->
		if
		:: MUST_REFUSE(t, op, k, f) -> r = LOST_LOCK
		:: else ->
			MUST_OWN(t, k);
			if
			:: op == COMPLETE ->
				PROPERTY(ONE_COMPLETION, g_completed[t] != fence[t]);
				PROPERTY(WORK_IS_OF_FENCE, g_outside[t] == fence[t]);
				g_completed[t] = fence[t]
			:: else
			fi;
			status[t] = to; tok[t] = 0; left[t] = 0;
			last_op[t] = op; last_tok[t] = k;
			g_lease[t] = 0; g_op[t] = op; g_op_tok[t] = k;
			r = OK
		fi
	fi;
	STANDS(t)
}

inline store(t, op, k, f, r)
{
	if
	:: op == CLAIM -> store_claim(t, k, r)
	:: op == HEARTBEAT -> store_heartbeat(t, k, f, r)
	:: op == RELEASE -> store_finish(t, RELEASE, k, f, READY, r)
	:: op == COMPLETE -> store_finish(t, COMPLETE, k, f, DONE, r)
	fi
}

#define ALL_DONE (status[0] == DONE && status[1] == DONE)

/* A UUID is unique. The model reuses names that nothing refers to any more, so that there are
 * few. */
#define NAMES 5
#define USED(k) (tok[0] == k || tok[1] == k || last_tok[0] == k || last_tok[1] == k || late_tok == k || \
		 g_lease[0] == k || g_lease[1] == k || g_op_tok[0] == k || g_op_tok[1] == k)
#define NAME(i) (a * NAMES + i)

/* Any number of replies may get lost, and any number of heartbeats may be sent. Then the LTL
 * formula could not hold. For it each lost reply is a fault, work lasts for one heartbeat, and
 * agent 0 never crashes. */
#ifdef LIVENESS
#define MAY_BEAT !beaten
#define BEATEN beaten = true
#define MAY_LOSE (faults > 0)
#define LOSE faults--
#define MAY_CRASH (a != 0 && faults > 0)
#else
#define MAY_BEAT true
#define BEATEN skip
#define MAY_LOSE true
#define LOSE skip
#define MAY_CRASH (faults > 0)
#endif

#ifdef LATE_CLAIM
#define MAY_BE_LATE (late_op == NONE && faults > 0)
#else
#define MAY_BE_LATE (late_op == NONE && faults > 0 && todo != CLAIM)
#endif

#define BE_LATE(op) faults--; late_op = op; late_task = t; late_tok = mine[a]; late_fence = f
#define ARRIVE late_op = NONE; late_task = 0; late_tok = 0; late_fence = 0

#define FORGET todo = NONE; t = 0; f = 0; r = 0; beaten = false; mine[a] = 0

proctype agent(byte a)
{
	byte todo, t, f, r;
	bool beaten;

	do
	/* look for work: a read, so the claim comes later and may find another agent's lock */
	:: atomic { todo == NONE && ALL_DONE -> break }
	:: atomic {
		todo == NONE && (CLAIMABLE(0) || CLAIMABLE(1)) ->
		if
		:: CLAIMABLE(0) -> t = 0
		:: CLAIMABLE(1) -> t = 1
		fi;
		if
		:: !USED(NAME(1)) -> mine[a] = NAME(1)
		:: else ->
			if
			:: !USED(NAME(2)) -> mine[a] = NAME(2)
			:: else ->
				if
				:: !USED(NAME(3)) -> mine[a] = NAME(3)
				:: else -> assert(!USED(NAME(4))); mine[a] = NAME(4)
				fi
			fi
		fi;
		todo = CLAIM }

	/* the agent believes that it has the lock */
	:: atomic { todo == WORK -> /* work outside, then report it */
		if
		:: f >= g_outside[t] -> g_outside[t] = f
		:: else /* refused there */
		fi;
		todo = COMPLETE }
	:: atomic { todo == WORK && faults > 0 -> faults--; todo = RELEASE }

	/* a call whose reply arrives */
	:: atomic {
		todo == CLAIM -> store_claim(t, mine[a], r);
		if
		:: r == OK -> f = fence[t]; todo = WORK; r = 0
		:: r == CONFLICT -> PROPERTY(SAME_ANSWER, g_lease[t] != mine[a]); FORGET
		fi }
	:: atomic {
		todo == WORK && MAY_BEAT -> store_heartbeat(t, mine[a], f, r);
		BEATEN;
		if
		:: r == LOST_LOCK -> FORGET
		:: r = 0 /* the agent continues; so does one that got no reply, or ignores it */
		fi }
	:: atomic { todo == WORK && MAY_BE_LATE -> BE_LATE(HEARTBEAT) }
	:: atomic {
		todo == RELEASE || todo == COMPLETE -> store(t, todo, mine[a], f, r);
		PROPERTY(SAME_ANSWER, (r == OK) == (g_op[t] == todo && g_op_tok[t] == mine[a]));
		if
		:: r == OK && todo == COMPLETE ->
			PROPERTY(DONE_STAYS, status[t] == DONE); g_acked[t] = true
		:: else
		fi;
		FORGET }

	/* no reply: the call was applied, or never arrived, or comes late; the agent repeats it
	 * unchanged */
	:: atomic {
		(todo == CLAIM || todo == RELEASE || todo == COMPLETE) && MAY_LOSE ->
		LOSE; store(t, todo, mine[a], f, r); r = 0 }
	:: atomic {
		(todo == CLAIM || todo == RELEASE || todo == COMPLETE) && MAY_BE_LATE ->
		BE_LATE(todo) }

	/* kill -9: for good, or a new run follows that remembers nothing */
	:: atomic { MAY_CRASH -> faults--; FORGET; break }
	:: atomic { MAY_CRASH && todo != NONE -> faults--; FORGET }
	od
}

#define ORPHAN(t) (mine[0] != tok[t] && mine[1] != tok[t] && mine[2] != tok[t])

#define TICK(t) \
	:: atomic { left[t] > 1 -> left[t]-- } \
	:: atomic { left[t] == 1 && ORPHAN(t) -> left[t] = 0; g_lease[t] = 0; STANDS(t) } \
	:: atomic { left[t] == 1 && !ORPHAN(t) && faults > 0 -> \
		faults--; left[t] = 0; g_lease[t] = 0; STANDS(t) }

/* The store's clock, and late requests. */
active proctype world()
{
	byte r;

end:
	do
	TICK(0)
	TICK(1)
	:: atomic {
		late_op != NONE -> store(late_task, late_op, late_tok, late_fence, r);
		r = 0; ARRIVE }
	:: atomic { late_op != NONE -> ARRIVE }
	od
}

init
{
	atomic { run agent(0); run agent(1); run agent(2) }
}

#ifdef LIVENESS
/* Agent 0 never crashes: all tasks get done. Weak fairness (pan -f). */
ltl all_done { <> (status[0] == DONE && status[1] == DONE) }
#endif
