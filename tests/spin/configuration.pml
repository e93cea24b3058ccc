/* configuration.pml - the swap of a target's configuration while calls read it.
 *
 * models lib/core/target.c: config_publish config_write_slot core_target_claim core_target_release
 * models lib/core/target.c: bide_target_configure
 * models lib/core/gates.h: core_config_copy core_config_slot
 * broken 1: a reader does not check the generation again after its copy
 * broken 2: a writer writes the slot in force
 * broken 3: two writers write without a claim
 *
 * Writers replace the configuration, of WORDS words, one word at a time; a reader copies it (one is
 * enough: readers write nothing). A writer may be killed at any
 * step: its claim is then taken over. (That a stopped writer resumes after its claim was taken over is the weakness
 * that target.c states.) Each configuration is a number, stored in every word.
 *
 * Promises: every copy is one configuration that was published, never a mixture, and a reader that starts after a
 * reload has ended never sees an older configuration. */
#ifndef BROKEN
#define BROKEN 0
#endif
#define WORDS   2
#define WRITERS 2
#define RELOADS 2 /* of each writer */

byte active_generation;         /* t->active */
byte word[2 * WORDS] = 1;       /* t->config: two slots; configuration 1 is in force */
byte claim;                     /* t->claim: the writer's number, 0: none */
bool dead[WRITERS + 1];         /* a claim of a dead writer is stale */
byte last_number = 1;           /* of a configuration */
byte published = 1;             /* the configuration in force: ghost */
bool was_published[1 + WRITERS * RELOADS + 1];

#define WORD(generation, i) word[((generation) % 2) * WORDS + (i)]

init
{
    atomic {
        was_published[1] = true;
        run writer(1);
        run writer(2);
        run reader()
    }
}

proctype writer(byte me)
{
    byte reloads, generation, number, i;

    do
    :: reloads < RELOADS ->
        reloads++;
#if BROKEN != 3
        if
        :: atomic { claim == 0 || (claim != me && dead[claim]) -> claim = me }
        :: claim != 0 && claim != me -> goto next /* BIDE_ERR_BUSY */
        fi;
#endif
        atomic { generation = active_generation; last_number++; number = last_number; i = 0 }
        do
        :: i < WORDS ->
#if BROKEN == 2
            atomic { WORD(generation, i) = number; i++ }
#else
            atomic { WORD(generation + 1, i) = number; i++ }
#endif
        :: i == WORDS -> break
        :: goto killed
        od;
        atomic { active_generation = generation + 1; published = number; was_published[number] = true }
        if
        :: skip
        :: goto killed
        fi;
        atomic {
            if
            :: claim == me -> claim = 0
            :: else
            fi
        }
next:
        atomic { generation = 0; number = 0; i = 0 }
    :: break
    od;
    goto end;
killed:
    dead[me] = true;
end:
    skip
}

proctype reader()
{
    byte generation, copy[WORDS], before, i;

    before = published; /* reloads that ended before the copy begins */
retry:
    atomic { generation = active_generation; i = 0 }
    do
    :: atomic { i < WORDS -> copy[i] = WORD(generation, i); i++ }
    :: i == WORDS -> break
    od;
#if BROKEN != 1
    if
    :: generation == active_generation
    :: generation != active_generation -> goto retry
    fi;
#endif
    assert(copy[0] == copy[1]);
    assert(was_published[copy[0]]);
    assert(copy[0] >= before)
}
