/* test_window.c - sums over a sliding window of ten slots: how long an entry counts, and idle times.
 *
 * The window here is 1 s long, so that a slot is 100 ms. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above */
#include <cmocka.h>

#include "core/window.h"

#define COUNT(table) (sizeof(table) / sizeof *(table))
#define MS           BIDE_MS
#define S            BIDE_S
#define NOW          (1000 * S)
#define SLOT         (100 * MS)

static struct bide_window_words_ words;

static struct core_window fresh_window(void)
{
    words = (struct bide_window_words_){0};
    return core_window(&words, 1 * S);
}

static void begin(struct core_window w, uint64_t total, int64_t now_ns)
{
    core_window_begin_slot(w, (struct core_marks){total, 0}, now_ns);
}

static uint32_t count(struct core_window w, int64_t now_ns)
{
    if (!core_window_is_current(w.words, now_ns))
        begin(w, 0, now_ns);
    return core_window_add(w, now_ns);
}

/* -- counts -------------------------------------------------------------------------------------------------------- */

static void an_empty_window_holds_nothing_at_any_time(void **state)
{
    static const int64_t times[] = {0, 1, SLOT, NOW, BIDE_DURATION_MAX, INT64_MAX};
    struct core_window w = fresh_window();
    for (size_t i = 0; i < COUNT(times); i++)
        assert_int_equal(core_window_sum(w, times[i]), 0);
}

static void an_entry_counts_for_nine_tenths_to_the_whole_window(void **state)
{
    for (int64_t offset = 0; offset < SLOT; offset += 7 * MS) {
        struct core_window w = fresh_window();
        int64_t at = NOW + offset;
        count(w, at);
        assert_int_equal(core_window_sum(w, at), 1);
        assert_int_equal(core_window_sum(w, at + 9 * SLOT), 1);
        assert_int_equal(core_window_sum(w, NOW + 10 * SLOT - 1), 1);
        assert_int_equal(core_window_sum(w, NOW + 10 * SLOT), 0);
        assert_int_equal(core_window_sum(w, at + 1 * S), 0);
    }
}

static void a_steady_stream_is_summed_over_ten_slots_at_any_offset(void **state)
{
    for (int64_t first = 0; first < 25; first++) {
        struct core_window w = fresh_window();
        for (int64_t slot = first; slot < first + 30; slot++) {
            for (int64_t i = 0; i < 3; i++)
                count(w, NOW + slot * SLOT + i);
            uint64_t slots = (uint64_t)(slot - first + 1);
            assert_int_equal(core_window_sum(w, NOW + slot * SLOT + 3), 3 * (slots < 10 ? slots : 10));
        }
    }
}

static void a_clock_that_starts_at_zero_counts_like_any_other(void **state)
{
    struct core_window w = fresh_window();
    for (int64_t slot = 0; slot < 30; slot++) {
        count(w, slot * SLOT);
        assert_int_equal(core_window_sum(w, slot * SLOT), slot < 10 ? slot + 1 : 10);
    }
}

static void after_any_idle_time_no_old_count_is_left(void **state)
{
    static const int64_t rests[] = {1 * S, 2 * S, 100 * S, 3600 * S, 86400 * S};
    for (size_t i = 0; i < COUNT(rests); i++) {
        struct core_window w = fresh_window();
        for (int64_t slot = 0; slot < 10; slot++)
            count(w, NOW + slot * SLOT);
        assert_int_equal(core_window_sum(w, NOW + 9 * SLOT), 10);
        int64_t later = NOW + 9 * SLOT + rests[i];
        assert_int_equal(core_window_sum(w, later), 0);
        count(w, later);
        assert_int_equal(core_window_sum(w, later), 1);
    }
}

static void only_the_end_of_a_slot_makes_it_stale(void **state)
{
    struct core_window w = fresh_window();
    assert_false(core_window_is_current(&words, NOW));
    begin(w, 0, NOW + 30 * MS);
    assert_true(core_window_is_current(&words, NOW + 30 * MS));
    assert_true(core_window_is_current(&words, NOW + SLOT - 1));
    assert_false(core_window_is_current(&words, NOW + SLOT));
}

/* Race: two threads read their clocks in one order and reach the window in the other. */
static void a_clock_slightly_behind_counts_into_the_current_slot(void **state)
{
    struct core_window w = fresh_window();
    count(w, NOW + SLOT);
    uint32_t epoch = count(w, NOW + SLOT - 1);
    assert_int_equal(core_window_sum(w, NOW + SLOT), 2);
    assert_int_equal(core_window_sum(w, NOW + SLOT - 1), 2);
    core_window_remove(w, epoch);
    assert_int_equal(core_window_sum(w, NOW + SLOT), 1);
}

static void beginning_a_slot_twice_keeps_what_was_counted(void **state)
{
    struct core_window w = fresh_window();
    begin(w, 5, NOW);
    core_window_add(w, NOW);
    begin(w, 9, NOW + 1);
    assert_int_equal(core_window_sum(w, NOW + 1), 1);
    assert_int_equal(core_window_oldest_marks(w, (struct core_marks){77, 77}, NOW + 1).mark, 5);
}

/* Race: another thread begins the slot first, so the CAS fails and the slot is checked again. */
static void a_lost_race_to_begin_a_slot_is_repeated(void **state)
{
    for (uint32_t losses = 1; losses <= 4; losses++) {
        struct core_window w = fresh_window();
        core_cas_failures = losses;
        begin(w, 5, NOW);
        assert_int_equal(core_cas_failures, 0);
        core_window_add(w, NOW);
        assert_int_equal(core_window_sum(w, NOW), 1);
        assert_int_equal(core_window_oldest_marks(w, (struct core_marks){77, 78}, NOW).mark, 5);
        assert_true(core_window_is_current(&words, NOW));
    }
}

static void begin_the_next_slot(uint64_t *word)
{
    begin(core_window(&words, 1 * S), 6, NOW + SLOT);
}

static void begin_ten_slots_later(uint64_t *word)
{
    begin(core_window(&words, 1 * S), 7, NOW + 10 * SLOT);
    core_window_add(core_window(&words, 1 * S), NOW + 10 * SLOT);
}

/* Race: a thread is about to begin a slot, while another begins the next slot. If the first moved the edge back, the
 * threads would count in two slots, and each would see its own count only. */
static void a_late_thread_does_not_move_the_edge_back(void **state)
{
    struct core_window w = fresh_window();
    core_before_cas = begin_the_next_slot;
    begin(w, 5, NOW);
    assert_int_equal(words.edge_ns, NOW + 2 * SLOT);
    core_window_add(w, NOW + SLOT);
    core_window_add(w, NOW); /* the late thread */
    assert_int_equal(core_window_sum(w, NOW), 2);
    assert_int_equal(core_window_sum(w, NOW + SLOT), 2);
}

/* Race: as above, but the slot of the late thread has been reused since. */
static void a_thread_late_by_a_whole_window_keeps_the_later_slot(void **state)
{
    struct core_window w = fresh_window();
    core_before_cas = begin_ten_slots_later;
    begin(w, 5, NOW);
    assert_int_equal(words.edge_ns, NOW + 11 * SLOT);
    assert_int_equal(core_window_sum(w, NOW + 10 * SLOT), 1);
    assert_int_equal(core_window_oldest_marks(w, (struct core_marks){77, 78}, NOW + 10 * SLOT).mark, 7);
}

static uint32_t expired_epoch;

/* Before the CAS of a count, not of a mark. */
static void remove_expired_count(uint64_t *word)
{
    if (word < words.count || word >= words.count + BIDE_SLOTS)
        core_before_cas = remove_expired_count;
    else
        core_window_remove(core_window(&words, 1 * S), expired_epoch);
}

/* Race: a refund changes the count of a slot that has left the window, while another thread begins the slot. */
static void a_slot_begins_although_an_expired_count_is_removed(void **state)
{
    struct core_window w = fresh_window();
    expired_epoch = count(w, NOW);
    core_before_cas = remove_expired_count;
    count(w, NOW + 10 * SLOT);
    assert_null(core_before_cas);
    assert_int_equal(core_window_sum(w, NOW + 10 * SLOT), 1);
}

/* -- removing ------------------------------------------------------------------------------------------------------ */

static void a_removed_entry_no_longer_counts_in_any_slot(void **state)
{
    for (int64_t slot = 0; slot < 10; slot++) {
        struct core_window w = fresh_window();
        count(w, NOW);
        uint32_t epoch = count(w, NOW + slot * SLOT);
        assert_int_equal(core_window_sum(w, NOW + slot * SLOT), 2);
        core_window_remove(w, epoch);
        assert_int_equal(core_window_sum(w, NOW + slot * SLOT), 1);
    }
}

static void removing_from_a_reused_slot_changes_nothing(void **state)
{
    struct core_window w = fresh_window();
    uint32_t epoch = count(w, NOW);
    count(w, NOW + 10 * SLOT);
    core_window_remove(w, epoch);
    assert_int_equal(core_window_sum(w, NOW + 10 * SLOT), 1);
}

static void removing_more_than_was_counted_stops_at_zero(void **state)
{
    struct core_window w = fresh_window();
    uint32_t epoch = count(w, NOW);
    for (int i = 0; i < 3; i++)
        core_window_remove(w, epoch);
    assert_int_equal(core_window_sum(w, NOW), 0);
    count(w, NOW);
    assert_int_equal(core_window_sum(w, NOW), 1);
}

static void a_removal_that_loses_a_race_removes_exactly_one(void **state)
{
    for (uint32_t losses = 1; losses <= 3; losses++) {
        struct core_window w = fresh_window();
        uint32_t epoch = count(w, NOW);
        count(w, NOW);
        core_cas_failures = losses;
        core_window_remove(w, epoch);
        assert_int_equal(core_cas_failures, 0);
        assert_int_equal(core_window_sum(w, NOW), 1);
    }
}

/* -- marks --------------------------------------------------------------------------------------------------------- */

static void the_oldest_mark_in_the_window_is_found(void **state)
{
    struct core_window w = fresh_window();
    const struct core_marks none = {999, 998};
    assert_int_equal(core_window_oldest_marks(w, none, NOW).mark, 999);
    assert_int_equal(core_window_oldest_marks(w, none, NOW).count, 998);
    for (int64_t slot = 0; slot < 30; slot++) {
        core_window_begin_slot(w, (struct core_marks){(uint64_t)slot * 10, (uint64_t)slot * 3}, NOW + slot * SLOT);
        uint64_t oldest = slot < 10 ? 0 : (uint64_t)slot - 9;
        struct core_marks got = core_window_oldest_marks(w, none, NOW + slot * SLOT);
        assert_int_equal(got.mark, oldest * 10);
        assert_int_equal(got.count, oldest * 3);
    }
    assert_int_equal(core_window_oldest_marks(w, none, NOW + 39 * SLOT).mark, 999);
}

static void slots_without_entries_are_skipped(void **state)
{
    struct core_window w = fresh_window();
    const struct core_marks none = {999, 0};
    begin(w, 10, NOW);
    begin(w, 20, NOW + 4 * SLOT);
    assert_int_equal(core_window_oldest_marks(w, none, NOW + 9 * SLOT).mark, 10);
    assert_int_equal(core_window_oldest_marks(w, none, NOW + 10 * SLOT).mark, 20);
    assert_int_equal(core_window_oldest_marks(w, none, NOW + 13 * SLOT).mark, 20);
    assert_int_equal(core_window_oldest_marks(w, none, NOW + 14 * SLOT).mark, 999);
}

/* A slot that was never begun has no mark, with any clock. */
static void a_zero_word_belongs_to_no_epoch(void **state)
{
    static const int64_t epochs[] = {0, 1, 9, 10, 0xffffff, 0x1000000, 0x1000001, 0x1000009, 0x2000000};
    struct core_window w = fresh_window();
    for (size_t i = 0; i < COUNT(epochs); i++)
        assert_int_equal(core_window_oldest_marks(w, (struct core_marks){999, 0}, epochs[i] * SLOT).mark, 999);
}

/* The epoch has 24 bits: with slots of 100 ms they wrap after 19 days. */
static void the_window_continues_across_an_epoch_wrap(void **state)
{
    const int64_t end = INT64_C(0x1000000);
    struct core_window w = fresh_window();
    for (int64_t slot = end - 20; slot < end + 20; slot++) {
        count(w, slot * SLOT);
        int64_t seen = slot - (end - 20) + 1;
        assert_int_equal(core_window_sum(w, slot * SLOT), seen < 10 ? seen : 10);
    }
}

static void totals_are_compared_in_forty_bits_so_that_they_may_wrap(void **state)
{
    const uint64_t top = (UINT64_C(1) << 40) - 1;
    static const struct {
        uint64_t total, mark, since;
    } rows[] = {{0, 0, 0}, {7, 5, 2}, {UINT64_C(1) << 40, (UINT64_C(1) << 40) - 1, 1}};
    for (size_t i = 0; i < COUNT(rows); i++)
        assert_int_equal(core_window_difference(rows[i].total, rows[i].mark), rows[i].since);
    struct core_window w = fresh_window();
    begin(w, UINT64_MAX - 2, NOW); /* stored in 40 bits */
    uint64_t mark = core_window_oldest_marks(w, (struct core_marks){0, 0}, NOW).mark;
    assert_int_equal(mark, top - 2);
    assert_int_equal(core_window_difference(UINT64_MAX, mark), 2);
    assert_int_equal(core_window_difference(1, mark), 4);
}

/* Race: this thread summed the total, then another thread counted more and began a slot with its larger total. */
static void a_mark_above_the_total_counts_as_zero(void **state)
{
    assert_int_equal(core_window_difference(100, 101), 0);
    assert_int_equal(core_window_difference(0, 1), 0);
    assert_int_equal(core_window_difference(UINT64_C(1) << 39, 1), (UINT64_C(1) << 39) - 1);
}

static void the_shortest_window_has_slots_of_one_nanosecond(void **state)
{
    words = (struct bide_window_words_){0};
    struct core_window w = core_window(&words, BIDE_SLOTS);
    for (int64_t i = 0; i < 20; i++) {
        count(w, NOW + i);
        assert_int_equal(core_window_sum(w, NOW + i), i < 10 ? i + 1 : 10);
    }
}

/* -- beside the window --------------------------------------------------------------------------------------------- */

static void removing_an_entry_changes_nothing_behind_the_window(void **state)
{
    static struct {
        struct bide_window_words_ words;
        uint64_t behind;
    } memory;
    struct core_window w = core_window(&memory.words, 1 * S);
    begin(w, 0, NOW);
    uint32_t epoch = core_window_add(w, NOW);
    memory.behind = (uint64_t)(epoch + 1) << 40 | 1;
    core_window_remove(w, epoch + 1);
    assert_int_equal(memory.behind, (uint64_t)(epoch + 1) << 40 | 1);
}

/* Race: another thread has stored the marks of the next slot, but not yet its edge. */
static void marks_of_a_slot_that_has_not_begun_are_not_read(void **state)
{
    struct core_window w = fresh_window();
    begin(w, 77, NOW + SLOT);
    words.edge_ns = 0;
    assert_int_equal(core_window_oldest_marks(w, (struct core_marks){99, 0}, NOW).mark, 99);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_window_holds_nothing_at_any_time),
        cmocka_unit_test(an_entry_counts_for_nine_tenths_to_the_whole_window),
        cmocka_unit_test(a_steady_stream_is_summed_over_ten_slots_at_any_offset),
        cmocka_unit_test(a_clock_that_starts_at_zero_counts_like_any_other),
        cmocka_unit_test(after_any_idle_time_no_old_count_is_left),
        cmocka_unit_test(only_the_end_of_a_slot_makes_it_stale),
        cmocka_unit_test(a_clock_slightly_behind_counts_into_the_current_slot),
        cmocka_unit_test(beginning_a_slot_twice_keeps_what_was_counted),
        cmocka_unit_test(a_lost_race_to_begin_a_slot_is_repeated),
        cmocka_unit_test(a_late_thread_does_not_move_the_edge_back),
        cmocka_unit_test(a_thread_late_by_a_whole_window_keeps_the_later_slot),
        cmocka_unit_test(a_slot_begins_although_an_expired_count_is_removed),
        cmocka_unit_test(a_removed_entry_no_longer_counts_in_any_slot),
        cmocka_unit_test(removing_from_a_reused_slot_changes_nothing),
        cmocka_unit_test(removing_more_than_was_counted_stops_at_zero),
        cmocka_unit_test(a_removal_that_loses_a_race_removes_exactly_one),
        cmocka_unit_test(the_oldest_mark_in_the_window_is_found),
        cmocka_unit_test(slots_without_entries_are_skipped),
        cmocka_unit_test(a_zero_word_belongs_to_no_epoch),
        cmocka_unit_test(the_window_continues_across_an_epoch_wrap),
        cmocka_unit_test(totals_are_compared_in_forty_bits_so_that_they_may_wrap),
        cmocka_unit_test(a_mark_above_the_total_counts_as_zero),
        cmocka_unit_test(the_shortest_window_has_slots_of_one_nanosecond),
        cmocka_unit_test(removing_an_entry_changes_nothing_behind_the_window),
        cmocka_unit_test(marks_of_a_slot_that_has_not_begun_are_not_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
