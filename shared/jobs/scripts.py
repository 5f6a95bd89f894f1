"""Loads the Lua scripts: one per transition, each documents its keys and arguments at its head."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from functools import cache, partial
from importlib import resources
from typing import TYPE_CHECKING, Any

from redis.exceptions import RedisError

from shared.jobs.job import FIELDS
from shared.jobs.keys import TotalKeys
from shared.jobs.states import TERMINAL, TRANSITIONS, outcome_of
from shared.jobs.totals import COSTS, DOCUMENTS, RAN_S, WAITED_S
from shared.models import Node, NodeKind
from shared.models.base import Model

if TYPE_CHECKING:
    from redis import Redis
    from redis.commands.core import Script

_OWN = "shared.jobs"
_WITH = re.compile(r"^-- with (\w+)\n", re.MULTILINE)


@cache
def source(name: str, package: str = _OWN) -> str:
    """The text of `lua/<name>.lua` of a package; a line `-- with <part>` is replaced by `lua/parts/<part>.lua`.

    The parts `states`, `job_fields` and `told` are written from modules here, so that each stands in one place.
    """
    if name == "parts/states":
        return _states()
    if name == "parts/job_fields":
        return f"local JOB_FIELDS = {_as_list(FIELDS)}\n"
    if name == "parts/told":
        told = {"WAITED_S": WAITED_S, "RAN_S": RAN_S, "TOLD": (*COSTS, *DOCUMENTS)}
        lists = "".join(f"local {name} = {_as_list(values)}\n" for name, values in told.items())
        return f"local TOTALS = '{TotalKeys.jobs}'\n{lists}"
    text = resources.files(package).joinpath("lua", f"{name}.lua").read_text(encoding="utf-8")
    return _WITH.sub(lambda found: source(f"parts/{found[1]}", package), text)


def _states() -> str:
    """The states as Lua.

    `TERMINAL[state]`; `may_become(from, to)`, false when `from` is no state; `outcome_of(state, partial, degraded)` of
    the values in a job's hash, nil while it is open.
    """
    lines = [f"  {state} = {{{_as_set(TRANSITIONS[state])}}},\n" for state in sorted(TRANSITIONS)]
    return (
        f"local TERMINAL = {{{_as_set(TERMINAL)}}}\n"
        f"local TRANSITIONS = {{\n{''.join(lines)}}}\n"
        "local function may_become(from, to) return (TRANSITIONS[from] or {})[to] == true end\n"
        f"local OUTCOMES = {{\n{_outcomes()}}}\n"
        "local function outcome_of(state, partial, degraded)\n"
        "  local known = OUTCOMES[state or '']\n"
        "  return known and known[partial == '1' and 'partial' or (degraded or '') ~= '' and 'degraded' or 'plain']\n"
        "end\n"
    )


def _outcomes() -> str:
    rows = (
        f"  {state} = {{plain = '{outcome_of(state, partial=False, degraded=())}', "
        f"degraded = '{outcome_of(state, partial=False, degraded=('some',))}', "
        f"partial = '{outcome_of(state, partial=True, degraded=())}'}},\n"
        for state in sorted(TERMINAL)
    )
    return "".join(rows)


def _as_list(values: Iterable[object]) -> str:
    return f"{{{', '.join(map(repr, values))}}}"


def _as_set(states: Iterable[str]) -> str:
    return ", ".join(f"{state} = true" for state in sorted(states))


class Scripts:
    """Registered scripts of one Redis client; redis-py sends the digest and reloads when Redis has forgotten it.

    `package`: whose folder `lua` they stand in.
    """

    def __init__(self, client: Redis, package: str = _OWN) -> None:
        self._client, self._package = client, package
        self._scripts: dict[str, Script] = {}

    def __call__(self, name: str, keys: list[str], args: list[Any], client: Any = None) -> Any:
        return self._script(name)(keys=keys, args=args, client=client)

    def ahead(self, name: str, keys: list[str], args: list[Any]) -> Callable[[], Any]:
        """Send a script that may run twice. What is returned waits for its reply, and has to be called.

        Where no reply comes, or an error, the script runs as by `__call__`, which raises what there is to raise.
        """
        again, pool, sha = partial(self, name, keys, args), self._client.connection_pool, self._script(name).sha
        try:
            connection: Any = pool.get_connection()
        except RedisError:
            return again
        try:
            connection.send_command("EVALSHA", sha, len(keys), *keys, *args)
        except RedisError:
            pool.release(connection)
            return again

        def reply() -> Any:
            try:
                return connection.read_response()
            except RedisError:
                return again()
            finally:
                pool.release(connection)

        return reply

    def _script(self, name: str) -> Script:
        script = self._scripts.get(name)
        if script is None:
            script = self._scripts[name] = self._client.register_script(source(name, self._package))
        return script


def node_args(nodes: Sequence[Node]) -> list[str]:
    """Nodes as script arguments: id, first state and JSON of each. A branch that comes with its children is grown."""
    grown = grown_branches(nodes)
    return [
        part for node in nodes for part in (node.id, "grown" if node.id in grown else _first_state(node), as_json(node))
    ]


def grown_branches(nodes: Iterable[Node]) -> frozenset[str]:
    """Ids of the branches whose children are among `nodes`: nothing is left to do for them."""
    return frozenset(node.parent_id for node in nodes if node.parent_id is not None)


def as_json(value: Model) -> str:
    """One line of JSON, as plain Redis clients read it; fields that have their default are left out."""
    return value.model_dump_json(exclude_defaults=True)


def _first_state(node: Node) -> str:
    """A leaf that a retry takes over comes bound: it waits for nothing."""
    if node.kind is NodeKind.BRANCH:
        return "open"
    return "waiting" if node.depends_on and node.bound_by is None else "pending"
