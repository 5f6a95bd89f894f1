"""Manifests as Kubernetes would get them, and what its NetworkPolicies let through."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
OVERLAYS = ROOT / "deploy" / "kubernetes" / "overlays"
Manifest = dict[str, Any]


@cache
def rendered(overlay: str) -> tuple[Manifest, ...]:
    """All objects of an overlay. Skips the test where there is no kubectl."""
    if not shutil.which("kubectl"):
        pytest.skip("kubectl is not installed")
    done = subprocess.run(
        ("kubectl", "kustomize", str(OVERLAYS / overlay)), capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    return tuple(yaml.safe_load_all(done.stdout))


def of_kind(objects: tuple[Manifest, ...], kind: str) -> dict[str, Manifest]:
    """Name -> object."""
    return {one["metadata"]["name"]: one for one in objects if one["kind"] == kind}


def workloads(objects: tuple[Manifest, ...]) -> dict[str, Manifest]:
    """Deployments and StatefulSets by name."""
    return of_kind(objects, "Deployment") | of_kind(objects, "StatefulSet")


def labels(workload: Manifest) -> Mapping[str, str]:
    """Those of its pods."""
    found: Mapping[str, str] = workload["spec"]["template"]["metadata"]["labels"]
    return found


def container(workload: Manifest) -> Manifest:
    """The one container that each of our pods has."""
    (found,) = workload["spec"]["template"]["spec"]["containers"]
    return dict(found)


def workers(objects: tuple[Manifest, ...]) -> dict[str, list[str]]:
    """Pool -> its command."""
    found = {
        labels(one)["app.kubernetes.io/component"]: container(one)["command"]
        for one in of_kind(objects, "Deployment").values()
    }
    return {name: command for name, command in found.items() if "worker" in command}


def option(command: list[str], name: str) -> str:
    """The value after an option."""
    return command[command.index(name) + 1]


def selects(selector: Mapping[str, Any], found: Mapping[str, str]) -> bool:
    """Whether a label selector takes these labels. An empty one takes all."""
    exact = all(found.get(name) == value for name, value in selector.get("matchLabels", {}).items())
    for wanted in selector.get("matchExpressions", []):
        assert wanted["operator"] == "In"
        exact = exact and found.get(wanted["key"]) in wanted["values"]
    return exact


def reaches(objects: tuple[Manifest, ...], source: Manifest, target: Manifest, port: int) -> bool:
    """Whether pods of one workload of the namespace may connect to another's: out of the first and into the second."""
    ends = (("Egress", source, target), ("Ingress", target, source))
    return all(
        any(
            selects(peer["podSelector"], labels(other))
            for peer in _peers(objects, direction, labels(own), port)
            if set(peer) == {"podSelector"}
        )
        for direction, own, other in ends
    )


def outside(objects: tuple[Manifest, ...], direction: str, workload: Manifest, port: int) -> list[Manifest]:
    """The peers beyond the namespace that a workload has at a port."""
    found = _peers(objects, direction, labels(workload), port)
    return [peer for peer in found if set(peer) != {"podSelector"}]


def _peers(objects: tuple[Manifest, ...], direction: str, own: Mapping[str, str], port: int) -> Iterator[Manifest]:
    side, rules = ("to", "egress") if direction == "Egress" else ("from", "ingress")
    for policy in of_kind(objects, "NetworkPolicy").values():
        if not selects(policy["spec"]["podSelector"], own):
            continue
        for rule in policy["spec"].get(rules, []):
            if port in {one["port"] for one in rule["ports"]}:
                yield from rule[side]
