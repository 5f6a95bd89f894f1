"""Draws what operators look at: pools, lanes, gates, memory. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from rich.console import Group, RenderableType
from rich.text import Text

from orchestrator.cli.text import columns, pairs
from orchestrator.operating import LaneLoad, PoolState, Stats
from shared.providers.gates.gate import time_of_day
from shared.providers.gates.state import GateState


def draw_pools(
    pools: Iterable[PoolState],
    lanes: Iterable[LaneLoad],
    gates: Iterable[GateState],
    stats: Stats,
    addresses: Mapping[str, str],
) -> RenderableType:
    """One table for each kind of thing; gates only where a server is called."""
    memory = f"{stats.memory_used / 1e6:,.0f} MB"
    limit = f" of {stats.memory_limit / 1e6:,.0f} MB" if stats.memory_limit else ""
    told = {
        "jobs": f"{stats.jobs_kept:,} kept, {stats.jobs_open:,} open",
        "dead letters": f"{stats.dead_letters:,}",
        "Redis": f"{memory}{limit}; about {stats.job_bytes / 1000:,.0f} kB a job",
        **addresses,
    }
    tables = [_pools(pools), _lanes(lanes), *_gates(gates), pairs(told)]
    return Group(*(part for table in tables for part in (table, Text())))


def _pools(pools: Iterable[PoolState]) -> RenderableType:
    table = columns("pool", "worker", "tasks", "oldest", "heartbeat", "queued", right=("tasks", "oldest", "heartbeat"))
    for pool in pools:
        queued = ", ".join(f"{name} {count:,}" for name, count in pool.queues.items())
        for worker in pool.workers:
            places = f"{worker.running} of {worker.threads}" if worker.threads else f"{worker.running}"
            oldest = f"{worker.longest_s:.0f} s" if worker.running else ""
            table.add_row(pool.pool, worker.worker, places, oldest, f"{worker.age_s:.0f} s ago", queued)
        for silent in pool.silent:
            said = "stopped" if silent.stopped else "silent"
            table.add_row(pool.pool, silent.worker, said, "", f"{silent.silent_s:.0f} s ago", queued)
        if not pool.workers and not pool.silent:
            table.add_row(pool.pool, Text("none", style="red"), "", "", "", queued)
    return table


def _lanes(lanes: Iterable[LaneLoad]) -> RenderableType:
    table = columns("lane", "waiting", "under way", "ends", "tenants", right=("waiting", "under way", "ends"))
    for lane in lanes:
        pace = f"{lane.ends_per_s:.2g} a second" if lane.ends_per_s else ""
        shares = ", ".join(f"{one.tenant} {one.waiting:,} + {one.under_way:,}" for one in lane.tenants)
        under_way = f"{lane.under_way:,} of {lane.window:,}"
        table.add_row(lane.lane, f"{lane.waiting:,} of {lane.room:,}", under_way, pace, shares)
    return table


def _gates(gates: Iterable[GateState]) -> list[RenderableType]:
    table = columns("server", "at", "gate", "until", "why")
    for gate in gates:
        until = gate.until or gate.paused_until
        table.add_row(gate.provider, gate.host, gate.state, time_of_day(until) if until else "", gate.why)
    return [table] if table.row_count else []
