"""Dashboard and alerts ask for metrics that exist, with labels that they have, and every alert says what to do."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections import defaultdict
from pathlib import Path

import pytest
import yaml

from orchestrator.metrics.collector import StoreCollector
from orchestrator.metrics.snapshot import _INFO, KEPT, LaneState, Snapshot
from orchestrator.server.metrics import ServerMetrics
from shared.connections.heartbeat import WorkerBeat
from shared.contract import Queue
from shared.models import Lane
from shared.process_counts import ProcessCounts
from shared.providers.gates.state import GateState
from shared.settings import load_settings

ROOT = Path(__file__).parents[2]
DEPLOY, PAGE = ROOT / "deploy", (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
ALERTS = [
    rule
    for group in yaml.safe_load((DEPLOY / "prometheus" / "alerts.yml").read_text(encoding="utf-8"))["groups"]
    for rule in group["rules"]
]
DASHBOARD = json.loads((DEPLOY / "grafana" / "dashboards" / "ramify.json").read_text(encoding="utf-8"))
QUERIES = [
    *(rule["expr"] for rule in ALERTS),
    *(target["expr"] for panel in DASHBOARD["panels"] for target in panel.get("targets", [])),
]
#: Prometheus' own, and the kubelet's.
OWN = {"up": {"namespace", "job", "instance"}} | {
    f"kubelet_volume_stats_{name}_bytes": {"namespace", "job", "instance", "persistentvolumeclaim"}
    for name in ("available", "capacity")
}


def everything() -> Snapshot:
    """One of all that there can be."""
    counts = ProcessCounts()
    counts.add("task:plan.job", "done", 1.0)
    counts.add("call:llm", "done", 1.0)
    lane = LaneState({"acme": 1, "other": 0}, {"acme": 1, "other": 0}, 1, 1.0, 1.0)
    names = (*_INFO, "saving")
    times = {f"{one}:interactive{kind}:1": 1 for one, kind in (("waited", ""), ("ran", ":question"))}
    return Snapshot(
        lanes=dict.fromkeys(Lane, lane),
        jobs={**times, "ingest:last": 1, "cost:llm_calls": 1},
        runs=counts.take(),
        cache={"llm:hit": 1},
        sizes=dict.fromkeys(KEPT, 1),
        redis=dict.fromkeys(names, 1),
        queued=dict.fromkeys(Queue, 1),
        workers=(WorkerBeat(worker="w", pool="plan", queues=("plan",)),),
        gates=(GateState(provider="llm", host="h"),),
        reaper_at=1.0,
    )


def known() -> dict[str, set[str]]:
    """Name of a sample -> its labels."""
    settings = load_settings(redis={"url": "redis://127.0.0.1:1/0"}, prices=PRICES, llm_model="m")
    server = ServerMetrics(settings)
    server.requests.labels("GET", "/", "200").inc()
    server.seconds.labels("/").observe(1)
    found = defaultdict[str, set[str]](set, OWN)
    families = [*StoreCollector(everything, settings).collect(), *server.registry.collect()]
    for sample in (sample for family in families for sample in family.samples):
        found[sample.name] |= {"namespace", "job", "instance", *sample.labels}
    server.close()
    return found


PRICES = {"llm_input": {"m": 1.0}, "llm_output": {"m": 1.0}}
KNOWN = known()


@pytest.mark.parametrize("query", QUERIES)
def test_every_query_asks_for_metrics_and_labels_that_there_are(query: str):
    names = re.findall(r"\b(?:(?:ramify|kubelet)_\w+|up)\b", query)
    assert names
    assert [name for name in names if name not in KNOWN] == []
    labels = set(re.findall(r'(\w+)\s*(?:=~|!~|!=|=)\s*"', query))
    for group in re.findall(r"\bby \(([^)]*)\)", query):
        labels |= {name.strip() for name in group.split(",")}
    assert labels <= set.union(*(KNOWN[name] for name in names))


def test_what_the_store_tells_is_never_summed_over_instances():
    for query in QUERIES:
        for name in re.findall(r"sum(?: by \([^)]*\))? \((?:rate|increase)?\(?(ramify_\w+)", query):
            assert name.startswith("ramify_http_"), query


def test_no_query_takes_two_installations_for_one():
    for rule in ALERTS:
        grouped = re.findall(r"\b(?:max|min|sum)(?: by \(([^)]*)\))?", rule["expr"])
        assert all(labels.startswith("namespace, job") for labels in grouped), rule["alert"]
    variables = {one["name"] for one in DASHBOARD["templating"]["list"]}
    for panel in DASHBOARD["panels"]:
        for target in panel.get("targets", []):
            names = re.findall(r"ramify_\w+(?:\{([^}]*)\})?", target["expr"])
            assert all(chosen.startswith('namespace=~"$namespace", job=~"$job"') for chosen in names), target["expr"]
    assert {"namespace", "job"} <= variables


def test_every_alert_has_a_severity_a_summary_and_a_paragraph_that_says_what_to_do():
    names = [rule["alert"] for rule in ALERTS]
    assert len(set(names)) == len(names)
    for rule in ALERTS:
        assert rule["labels"]["severity"] in {"critical", "warning", "info"}
        assert rule["annotations"]["summary"]
    told = re.findall(r"^\*\*(Ramify\w+)\.\*\* (.{80,})", PAGE, re.MULTILINE)
    assert sorted(name for name, _ in told) == sorted(names)


def test_the_page_names_every_metric_and_no_other():
    families = {re.sub(r"_(bucket|sum|count)$", "", name) for name in KNOWN if name.startswith("ramify_")}
    table = PAGE.partition("## Metrics")[2].partition("\n## ")[0]
    named = {f"ramify_{name}" for name in re.findall(r"`ramify_(\w+)", table)}
    assert named == families


def test_panels_do_not_overlap_and_have_ids_of_their_own():
    panels = DASHBOARD["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    cells = [
        (x, y)
        for panel in panels
        for at in [panel["gridPos"]]
        for x in range(at["x"], at["x"] + at["w"])
        for y in range(at["y"], at["y"] + at["h"])
    ]
    assert len(cells) == len(set(cells))
    assert max(x for x, _ in cells) < 24


@pytest.mark.parametrize(
    "command",
    [
        ("check", "rules", "alerts.yml"),
        ("test", "rules", "alerts_test.yml"),
        ("check", "config", "--syntax-only", "prometheus.yml"),
    ],
)
def test_promtool_finds_no_fault(command: tuple[str, ...]):
    if (promtool := shutil.which("promtool")) is None:
        pytest.skip("promtool is not installed: Debian has it in the package prometheus")
    done = subprocess.run((promtool, *command), cwd=DEPLOY / "prometheus", capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
