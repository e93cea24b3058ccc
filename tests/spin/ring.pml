/* ring.pml - the ring between the threads of calls and the export thread: nothing is lost, torn or slept through.
 *
 * models lib/telemetry/ring.h: telemetry_ring_reserve telemetry_ring_publish
 * models lib/telemetry/ring.c: telemetry_ring_peek telemetry_ring_pop ring_release telemetry_ring_sleep telemetry_ring_awake
 * broken 1: the consumer looks at the head before it announces that it sleeps
 * broken 2: the consumer frees a record before it has cleared it
 * broken 3: a producer publishes its record before it has written it
 * broken 4: a producer looks for an announcement before it has reserved its place
 *
 * Records have one size, which is a cell; the ring has CELLS of them. A record is its header, 0 until it is published, and
 * its content. Positions never wrap. Each step is one access to a shared word.
 *
 * Promises: a producer finds its place clear. The consumer reads what the producer of the position wrote. When all
 * producers have ended, every record was taken or dropped, and no consumer sleeps beside a published record. */
#ifndef BROKEN
#define BROKEN 0
#endif
#define CELLS     2
#define PRODUCERS 2
#define RECORDS   2 /* of each producer */
#define NO_WAKE   255

byte head, tail;
byte header[CELLS];
byte content[CELLS];
byte wake_at = NO_WAKE;
bool signalled; /* the eventfd */
byte writer[PRODUCERS * RECORDS]; /* of each position: to compare with */
byte taken, dropped, ended;

inline look_for_announcement(position)
{
    seen = wake_at;
    if
    :: seen == position -> signalled = true
    :: else
    fi
}

proctype producer(byte id)
{
    byte count, h, t, seen, early; /* h and t: cleared for fewer states */
    do
    :: count == RECORDS -> break
    :: count < RECORDS ->
        count++;
        h = head;
reserve:
        t = tail;
        if
        :: h + 1 - t > CELLS -> atomic { dropped++; goto next }
        :: else
        fi;
#if BROKEN == 4
        early = wake_at;
#endif
        atomic {
            if
            :: head == h -> head = h + 1; writer[h] = id
            :: else -> h = head; goto reserve
            fi
        };
        assert(header[h % CELLS] == 0 && content[h % CELLS] == 0);
#if BROKEN == 3
        header[h % CELLS] = 1;
        content[h % CELLS] = id;
#else
        content[h % CELLS] = id;
        header[h % CELLS] = 1;
#endif
#if BROKEN == 4
        if
        :: early == h -> signalled = true
        :: else
        fi;
#else
        look_for_announcement(h);
#endif
next:   h = 0; t = 0
    od;
    ended++
}

proctype consumer()
{
    byte seen;
    do
    :: header[tail % CELLS] != 0 ->
        assert(content[tail % CELLS] == writer[tail]);
        taken++;
#if BROKEN == 2
        tail = tail + 1;
        content[(tail - 1) % CELLS] = 0;
        header[(tail - 1) % CELLS] = 0
#else
        content[tail % CELLS] = 0;
        header[tail % CELLS] = 0;
        tail = tail + 1
#endif
    :: header[tail % CELLS] == 0 ->
#if BROKEN == 1
        seen = head;
        wake_at = tail;
#else
        wake_at = tail;
        seen = head;
#endif
        if
        :: seen <= tail ->
            if /* sleeps */
            :: signalled -> signalled = false
            :: ended == PRODUCERS && taken + dropped == PRODUCERS * RECORDS -> break
            fi
        :: else /* a record is reserved: it looks again soon */
        fi;
        wake_at = NO_WAKE
    od
}

init
{
    atomic { run producer(1); run producer(2); run consumer() }
}
