/* probe.pml - the probe slots of a half-open circuit breaker.
 *
 * models lib/core/breaker.c: probe_slot_try_claim probe_slot_is_taken probe_slot_is_mine probe_record_vote
 * models lib/core/breaker.c: probe_slots_succeeded breaker_begin_half_open breaker_try_open breaker_try_close
 * broken 1: a caller that stalled takes the slot of a probe of a later half-open period
 * broken 2: a probe votes although its slot has expired and belongs to another probe
 *
 * Callers are admitted as probes, report, or are killed and never report. The open time is over at once. A slot may
 * expire at any time while its probe has not reported. The breaker word is its state and generation; a slot is one word
 * too. Each step is one access to a shared word.
 *
 * Promises: a claim never replaces a probe of the current generation whose slot has not expired. A generation admits at
 * most PROBES, and one more for each slot that expired or was released. At most one result per slot counts. When all
 * callers are dead or done, one more caller at a healthy server closes the breaker. */
#ifndef BROKEN
#define BROKEN 0
#endif
#define PROBES      2
#define CALLERS     3
#define GENERATIONS 6 /* open 1, half open 2, open 3, half open 4, ... */
#define OPEN        1 /* odd generations of this model, half open: even; CLOSED ends it */

#define FREE      0
#define TAKEN     1
#define SUCCEEDED 2

byte generation = OPEN;  /* of the breaker word ... */
bool closed;             /* ... and whether its state is CLOSED */
byte era[PROBES];         /* a slot: its generation, ... */
byte stamp[PROBES];      /* ... its stamp, ... */
byte what[PROBES];       /* ... and FREE, TAKEN or SUCCEEDED; */
bool expired[PROBES];    /* whether its expiry has passed: no part of the word */
byte admitted[GENERATIONS + 2];
byte released[GENERATIONS + 2];
byte expiries;
byte ended; /* callers that are done or dead */

#define IS_HALF_OPEN(g) (!closed && (g) % 2 == 0)
#define IS_TAKEN(i, g)  (era[i] == (g) && what[i] != FREE && (what[i] == SUCCEEDED || !expired[i]))

/* The clock: the slot of a probe that has not reported may expire. */
active proctype clock()
{
    do
    :: atomic { expiries < 1 && what[0] == TAKEN && !expired[0] ->
        expired[0] = true; released[era[0]]++; expiries++ }
    :: atomic { expiries < 1 && what[1] == TAKEN && !expired[1] ->
        expired[1] = true; released[era[1]]++; expiries++ }
    :: ended == CALLERS -> break
    od
}

/* The first part of probe_slot_try_claim: sets `slot`, PROBES if refused. `mine` is the stamp. */
inline claim(g)
{
    slot = 0;
    do
    :: slot < PROBES ->
        atomic { taken = IS_TAKEN(slot, g); old_of = era[slot]; old_stamp = stamp[slot]; old_what = what[slot] }
#if BROKEN != 1
        if
        :: generation == g && !closed
        :: generation != g || closed -> slot = PROBES; break
        fi;
#endif
        if
        :: taken -> slot++
        :: !taken ->
            if
            :: atomic { era[slot] == old_of && stamp[slot] == old_stamp && what[slot] == old_what ->
                assert(!(generation != g && !closed && IS_TAKEN(slot, generation) && what[slot] == TAKEN));
                era[slot] = g; stamp[slot] = (stamp[slot] + 1) % 4; what[slot] = TAKEN; expired[slot] = false;
                mine = stamp[slot];
                admitted[g]++;
                assert(admitted[g] <= PROBES + released[g]) }
                break
            :: atomic { era[slot] != old_of || stamp[slot] != old_stamp || what[slot] != old_what -> slot++ }
            fi
        fi
    :: slot == PROBES -> break
    od
}

/* The last part of probe_record_vote and of a refused probe_slot_try_claim. */
inline close_if_all_succeeded(g)
{
    atomic { all = (era[0] == g && what[0] == SUCCEEDED) }
    atomic { all = all && era[1] == g && what[1] == SUCCEEDED }
    atomic {
        if
        :: all && generation == g && !closed -> closed = true
        :: else
        fi
    }
}

/* probe_slot_try_claim as a whole. */
inline claim_or_close(g)
{
    claim(g);
    if
    :: slot == PROBES -> close_if_all_succeeded(g)
    :: slot < PROBES
    fi
}

/* breaker_begin_half_open, or probe_slot_try_claim alone; `seen` is the generation in the breaker word. */
inline admit()
{
    slot = PROBES;
    seen = generation;
    if
    :: seen % 2 == 1 && seen < GENERATIONS ->
        if
        :: atomic { generation == seen -> generation++; seen++ }
            claim_or_close(seen)
        :: generation != seen
        fi
    :: seen % 2 == 0 -> claim_or_close(seen)
    :: else
    fi
}

#define STILL_MINE (era[slot] == seen && stamp[slot] == mine && what[slot] == TAKEN)

/* probe_record_vote */
inline vote(result)
{
    if
    :: generation == seen && !closed ->
#if BROKEN == 2
        atomic { is_mine = true; old_stamp = stamp[slot]; old_what = what[slot] }
#else
        atomic { is_mine = STILL_MINE && !expired[slot]; old_stamp = stamp[slot]; old_what = what[slot] }
#endif
        if
        :: is_mine && result == 0 -> /* failed: breaker_try_open */
            atomic {
                if
                :: generation == seen && !closed -> generation++
                :: else
                fi
            }
        :: is_mine && result == 1 ->
            if
            :: atomic { era[slot] == seen && stamp[slot] == old_stamp && what[slot] == old_what ->
                assert(stamp[slot] == mine && what[slot] == TAKEN);
                what[slot] = SUCCEEDED }
                close_if_all_succeeded(seen)
            :: atomic { !(era[slot] == seen && stamp[slot] == old_stamp && what[slot] == old_what) -> skip }
            fi
        :: is_mine && result == 2 -> /* neutral: the slot is free again */
            atomic {
                if
                :: era[slot] == seen && stamp[slot] == old_stamp && what[slot] == old_what ->
                    what[slot] = FREE;
                    if
                    :: !expired[slot] -> released[seen]++
                    :: else
                    fi
                :: else
                fi
            }
        :: !is_mine
        fi
    :: generation != seen || closed
    fi
}

active[CALLERS] proctype caller()
{
    byte seen, slot, mine, old_of, old_stamp, old_what;
    bool taken, is_mine, all;

    admit();
    if
    :: slot < PROBES ->
        if
        :: vote(0)
        :: vote(1)
        :: vote(2)
        :: skip /* killed */
        fi
    :: slot == PROBES
    fi;
    atomic { seen = 0; slot = 0; mine = 0; old_of = 0; old_stamp = 0; old_what = 0; taken = 0; is_mine = 0; all = 0;
             ended++ }
}

/* The caller after all others. Every slot of a killed probe has expired by then. */
active proctype last_caller()
{
    byte seen, slot, mine, old_of, old_stamp, old_what, tries;
    bool taken, is_mine, all;

    atomic { ended == CALLERS -> expired[0] = true; expired[1] = true; released[era[0]]++; released[era[1]]++ }
    do
    :: closed -> break
    :: !closed && generation > GENERATIONS -> break /* beyond the model */
    :: !closed && generation <= GENERATIONS ->
        assert(tries <= PROBES + 1);
        tries++;
        admit();
        if
        :: slot < PROBES -> vote(1)
        :: slot == PROBES
        fi
    od
}
