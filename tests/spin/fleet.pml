/* fleet.pml - the exchange of tokens between the members of a fleet and its bucket in Redis.
 *
 * models lib/fleet/protocol/member.c: lease_member_join lease_member_make_request lease_member_accept_reply
 * models lib/fleet/protocol/member.c: lease_member_request_failed member_return_tokens member_add_grant
 * models lib/fleet/protocol/member.c: member_advance_floor member_repay_advance
 * models lib/fleet/protocol/bucket.c: lease_bucket_serve
 * models lib/core/lease.c: core_lease_collect
 * broken 1: the tokens of a request that failed are put back into the target
 * broken 2: a request without a reply is sent again
 * broken 3: returned tokens are read and removed in two steps
 * broken 4: a leased member refills by itself
 * broken 5: the first grant does not repay an advance that is spent
 * broken 6: the floor refills from the join on, besides the advance
 *
 * Two members (the second with fewer events: the search stays small), each with a thread that exchanges and with calls
 * that earn and spend. A request may be lost before Redis runs it, its reply may be lost, or come after the member has
 * given up. A member may be killed and join again. Tokens are whole; everything that the fleet's bucket refills, and
 * its initial tokens, are there at the start. Time passes in accruals: in each, a floor earns one token.
 *
 * Promise: spent <= refill of the bucket + earned + floors while disconnected + one token for each member that was
 * granted none and whose first accrual was not over when its first reply came or it was killed. */
#ifndef BROKEN
#define BROKEN 0
#endif
#define MEMBERS   2
#define REFILL    1 /* tokens in the bucket */
#define CAPACITY  2 /* of a target */
#define EARNINGS  1 /* of the whole run */
#define FLOORS    1 /* of the whole run */
#define EXCHANGES 2 /* of the first member; the second has one */
#define RESTARTS  1 /* of the first member */

byte bucket = REFILL;
byte level[MEMBERS];     /* of the target's bucket */
byte earned[MEMBERS];    /* counted in the target, not yet collected */
mtype = { joined, leased, failing };
mtype state[MEMBERS];    /* joined, failing: the target refills at its floor, ... */
bool delayed[MEMBERS];   /* ... but not in the first accrual after the join */
bool ended[MEMBERS];
byte spent, all_earned, all_floors, restarts; /* ghosts */
bool unpaid[MEMBERS];    /* ghost: neither a grant nor the floor's first accrual has paid the advance, ... */
byte killed_unpaid;      /* ... of killed members */

chan to_redis = [MEMBERS] of { byte, byte, byte };             /* member, number of the request, tokens in it */
chan to_member[MEMBERS] = [EXCHANGES] of { byte, byte };       /* number of the request, tokens granted */

#define PROMISE (spent <= REFILL + all_earned + all_floors + unpaid[0] + unpaid[1] + killed_unpaid)
#define REFILLS(i) (state[i] != leased && all_floors < FLOORS && (delayed[i] || level[i] < CAPACITY))

/* Redis serves a request atomically: lease_bucket_serve, script.lua. It may lose the request, or the reply. */
active proctype redis()
{
    byte member, number, tokens, granted;

end:
    do
    :: atomic { to_redis ? member, number, tokens ->
        bucket = bucket + tokens;
        if
        :: granted = bucket
        :: granted = 0 /* nothing wanted */
        fi;
        bucket = bucket - granted;
        if
        :: to_member[member] ! number, granted
        :: skip /* the reply is lost */
        fi;
        member = 0; number = 0; tokens = 0; granted = 0 }
    :: atomic { to_redis ? member, number, tokens -> /* the request is lost */
        member = 0; number = 0; tokens = 0 }
    od
}

/* An accrual passes without a lease: the floor earns a token. In the first one it earns the advance. */
inline refill(i)
{
    all_floors++;
    if
    :: delayed[i] ->
        delayed[i] = false;
        unpaid[i] = false
#if BROKEN == 6
        ; level[i]++
#endif
    :: else -> level[i]++
    fi
}

/* The calls of all processes: each step is one atomic change of a target. */
active proctype calls()
{
    do
    :: atomic { level[0] > 0 -> level[0]--; spent++; assert(PROMISE) }
    :: atomic { level[1] > 0 -> level[1]--; spent++; assert(PROMISE) }
    :: atomic { all_earned < EARNINGS -> earned[0]++; all_earned++ }
    :: atomic { REFILLS(0) -> refill(0) }
    :: atomic { REFILLS(1) -> refill(1) }
#if BROKEN == 4
    :: atomic { state[1] == leased && level[1] == 0 -> level[1]++ }
#endif
    :: atomic { ended[0] && ended[1] && level[0] == 0 && level[1] == 0 -> break }
    od
}

/* lease_member_make_request: collected and returned tokens leave the target before the request is sent. */
inline make_request()
{
    atomic { tokens = earned[me]; earned[me] = 0 }
    if
#if BROKEN == 3
    :: returned = level[me];
        level[me] = (level[me] > returned -> level[me] - returned : 0);
        tokens = tokens + returned
#else
    :: atomic { state[me] == leased -> tokens = tokens + level[me]; level[me] = 0 } /* returns its tokens */
#endif
    :: skip
    fi;
    number++;
    to_redis ! me, number, tokens
}

/* lease_member_join empties the target and adds the first retry of its floor. */
inline join()
{
    killed_unpaid = killed_unpaid + unpaid[me];
    level[me] = 1;
    advance = 1;
    delayed[me] = true;
    unpaid[me] = true;
    earned[me] = 0;
    state[me] = joined
}

/* lease_member_accept_reply: only while its request is pending. Three steps: it extends the lease, removes the advance
 * from the target as far as it is not spent, and adds the grant without the part that repays the rest. */
inline add_grant()
{
    atomic { state[me] = leased; delayed[me] = false }
    atomic {
        returned = (level[me] < advance -> level[me] : advance);
        level[me] = level[me] - returned;
        advance = advance - returned
    }
    atomic {
#if BROKEN == 5
        advance = 0;
#endif
        unpaid[me] = unpaid[me] && granted == 0;
        returned = (advance < granted -> advance : granted);
        advance = advance - returned;
        level[me] = level[me] + granted - returned; /* beyond the capacity it would be kept for the next request */
        granted = 0;
        assert(PROMISE)
    }
}

active[MEMBERS] proctype member()
{
    byte me = _pid - 2, number, tokens, granted, replied, returned, advance;

    atomic { join() }
    do
    :: number < EXCHANGES - me ->
        make_request();
        if
        :: to_member[me] ? replied, granted ->
            if
            :: replied == number -> add_grant()
            :: replied != number -> granted = 0 /* late: node.c matches replies to requests by their order */
            fi
        :: state[me] = failing; /* lease_member_request_failed: no reply in time */
#if BROKEN == 1
            level[me] = level[me] + tokens
#endif
#if BROKEN == 2
            to_redis ! me, number, tokens
#endif
        fi;
        atomic { tokens = 0; replied = 0; returned = 0 }
    :: atomic { me == 0 && restarts < RESTARTS -> restarts++; join() } /* killed: its tokens are lost */
    :: atomic { number == EXCHANGES - me -> ended[me] = true; break }
    od
}
