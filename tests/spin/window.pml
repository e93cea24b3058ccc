/* window.pml - the window budget: a retry is counted in a slot first, the sum is read afterwards.
 *
 * models lib/core/window.h: core_epoch_of
 * models lib/core/window.c: slot_try_begin core_window_begin_slot core_window_add core_window_sum
 * models lib/core/window.c: core_window_remove
 * models lib/core/budget.c: window_charge
 * broken 1: a late thread moves the edge of the window back
 * broken 2: the sum is read before the retry is counted
 *
 * Callers compete for LIMIT retries per window of SLOTS slots. Time is counted in slots; the edge is the end of the
 * current slot. Between reading the clock and its decision a caller may be late by one slot: lateness near a whole
 * window is the weakness that budget.c states. Each step is one access to a shared word; the count of a slot and its
 * epoch are one word.
 *
 * Promise: an entry lives for at least SLOTS - 1 slots (window.h: 0.9 of the window), so no SLOTS - 1 consecutive slots
 * contain more than LIMIT decisions to retry. */
#ifndef BROKEN
#define BROKEN 0
#endif
#define SLOTS   3
#define LIMIT   1
#define CALLERS 3
#define CALLS   1               /* of each caller */
#define FIRST   SLOTS           /* so that no epoch is negative */
#define LAST    (FIRST + SLOTS) /* of the clock */

byte clock = FIRST;
byte edge;              /* edge_ns */
byte tag[SLOTS];        /* of a count: the epoch ... */
byte value[SLOTS];      /* ... and the retries */
byte granted[LAST + 1]; /* retries, by the time of the decision */
byte read_at[CALLERS];  /* the time that a caller uses; 0: none */

#define EPOCH_OF(now) ((now) > edge - 1 -> (now) : edge - 1)
#define MAY_TICK(p)   (read_at[p] == 0 || clock == read_at[p])
#define AT            (epoch % SLOTS)

active proctype ticker()
{
    do
    :: atomic { clock < LAST && MAY_TICK(0) && MAY_TICK(1) && MAY_TICK(2) -> clock++ }
    :: clock == LAST -> break
    od
}

inline assert_not_overspent()
{
    sum = 0;
    for (i : FIRST .. LAST) {
        sum = sum + granted[i];
        if
        :: i >= FIRST + SLOTS - 1 -> sum = sum - granted[i - (SLOTS - 1)]
        :: else
        fi;
        assert(sum <= LIMIT)
    }
}

/* core_window_sum: one load of the edge, one of each slot. */
inline read_sum()
{
    atomic { epoch = EPOCH_OF(now); sum = 0; i = 0 }
    do
    :: atomic { i < SLOTS ->
        sum = sum + (tag[(epoch - i) % SLOTS] == epoch - i -> value[(epoch - i) % SLOTS] : 0);
        i++ }
    :: i == SLOTS -> break
    od
}

/* core_window_begin_slot: begin the slot by a CAS, or find it begun; then raise the edge. */
inline begin_slot()
{
    skip;
again:
    epoch = EPOCH_OF(now);
    atomic { old_tag = tag[AT]; old_value = value[AT] }
    if
    :: old_tag == epoch
    :: old_tag != epoch ->
        if
        :: atomic { tag[AT] == old_tag && value[AT] == old_value -> tag[AT] = epoch; value[AT] = 0 }
        :: atomic { tag[AT] != old_tag || value[AT] != old_value -> goto again }
        fi
    fi;
#if BROKEN == 1
    edge = epoch + 1
#else
    edge = (edge > epoch + 1 -> edge : epoch + 1) /* core_raise */
#endif
}

active[CALLERS] proctype caller()
{
    byte calls, now, epoch, charged, sum, i, old_tag, old_value;

    do
    :: calls == CALLS -> break
    :: break
    :: atomic { calls < CALLS -> calls++; now = clock; read_at[_pid - 1] = now }
        if
        :: now >= edge -> begin_slot()
        :: now < edge
        fi;
#if BROKEN == 2
        read_sum();
        sum++;
#endif
        epoch = EPOCH_OF(now);
        atomic { value[AT]++; charged = tag[AT] }
#if BROKEN != 2
        read_sum();
#endif
        if
        :: atomic { sum <= LIMIT -> granted[clock]++; assert_not_overspent() }
        :: atomic { sum > LIMIT ->
            for (i : 0 .. SLOTS - 1) {
                if
                :: tag[i] == charged && value[i] > 0 -> value[i]-- /* core_window_remove */
                :: else
                fi
            } }
        fi;
        atomic { now = 0; epoch = 0; charged = 0; sum = 0; i = 0; old_tag = 0; old_value = 0; read_at[_pid - 1] = 0 }
    od
}
