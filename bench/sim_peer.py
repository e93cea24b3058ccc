#!/usr/bin/env python3
"""The storm of bench/sim.c written in Python: with heapq, and with SimPy if it can be imported.

    bench/sim_peer.py

The model is that of scenarios/storm_herd.ini with full jitter: all callers fail at 0, the outage lasts until 200 ms, at
most six attempts, waits of 0 to 100 ms * 2^n. Like the simulator it counts attempts, and served requests per 50 ms.
Prints results in the form that bench/bench.h describes. CPU time of the process, in the least disturbed run.
"""
import heapq
import random
import sys
import time

OUTAGE_S = 0.2
BASE_S = 0.1
ATTEMPTS = 6
INTERVAL_S = 0.05
RUNS = 3


class Count:
    """Counters of a storm."""

    def __init__(self):
        self.attempts = 0
        self.served = {}

    def attempt(self, now, attempt):
        """Returns True if the caller has to wait and retry."""
        self.attempts += 1
        if now <= OUTAGE_S:
            return attempt < ATTEMPTS
        interval = int(now / INTERVAL_S)
        self.served[interval] = self.served.get(interval, 0) + 1
        return False


def wait(attempt):
    return random.random() * BASE_S * 2 ** (attempt - 1)


def with_heapq(callers):
    count = Count()
    queue = [(0.0, caller, 1) for caller in range(callers)]
    heapq.heapify(queue)
    while queue:
        now, caller, attempt = heapq.heappop(queue)
        if count.attempt(now, attempt):
            heapq.heappush(queue, (now + wait(attempt), caller, attempt + 1))
    return count


def with_simpy(callers):
    """SimPy 3 and later."""
    import simpy

    count = Count()
    world = simpy.Environment()

    def call():
        attempt = 1
        while count.attempt(world.now, attempt):
            yield world.timeout(wait(attempt))
            attempt += 1

    for _ in range(callers):
        world.process(call())
    world.run()
    return count


def with_simpy_2(callers):
    """SimPy 2, as packaged by Debian."""
    from SimPy.Simulation import Process, Simulation, hold

    count = Count()
    world = Simulation()
    world.initialize()

    class Call(Process):
        def run(self):
            attempt = 1
            while count.attempt(world.now(), attempt):
                yield hold, self, wait(attempt)
                attempt += 1

    for _ in range(callers):
        call = Call(sim=world)
        world.activate(call, call.run())
    world.simulate(until=1000)
    return count


def attempts_per_s(storm, callers):
    best = 0.0
    for run in range(RUNS):
        random.seed(run)
        begin = time.process_time()
        count = storm(callers)
        best = max(best, count.attempts / (time.process_time() - begin))
        mean = count.attempts / callers
        if not 3.7 < mean < 4.1:
            sys.exit(f"sim_peer: {mean:.3f} attempts per caller, expected 3.904")
    return best


def figure(key, storm, callers):
    print(f"{key} {attempts_per_s(storm, callers):.3f} attempts/s -")


def main():
    figure("sim.python_heapq.attempts_per_s.100k", with_heapq, 100_000)
    for storm in (with_simpy, with_simpy_2):
        try:
            figure("sim.simpy.attempts_per_s.1k", storm, 1_000)
            return
        except ImportError:
            pass
    print("sim_peer: no SimPy: its result is left out", file=sys.stderr)


main()
