"""The Helm chart makes the objects of the overlays: rendered where there is Helm, its values checked everywhere."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import subprocess
from importlib.util import find_spec
from typing import Any

import jsonschema
import pytest
import yaml

from tests.deploy.manifests import OVERLAYS, ROOT, Manifest, container, of_kind, option, rendered, workers

CHART = ROOT / "deploy" / "helm" / "ramify"
VALUES = yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8"))
SCHEMA = json.loads((CHART / "values.schema.json").read_text(encoding="utf-8"))
TEMPLATES = {path.name: path.read_text(encoding="utf-8") for path in (CHART / "templates").iterdir()}


def charted(values: Manifest, namespace: str = "ramify") -> tuple[Manifest, ...]:
    """All objects of the chart, by the program or by helm-python-sdk. Skips the test where neither is there."""
    if shutil.which("helm"):
        command = ("helm", "template", "ramify", str(CHART), "--namespace", namespace, "--values", "-")
        text = subprocess.run(
            command, input=yaml.safe_dump(values), capture_output=True, text=True, timeout=60, check=True
        ).stdout
    elif find_spec("helm_python"):
        import helm_python

        chart = helm_python.Chart.load(CHART)
        chart.validate_schema(values)
        found = chart.render(values, name="ramify", namespace=namespace)
        text = "\n---\n".join(one for path, one in found.items() if path.endswith(".yaml"))
    else:
        pytest.skip("neither helm nor helm-python-sdk is installed")
    return tuple(one for one in yaml.safe_load_all(text) if one)


def as_overlay(overlay: str) -> Manifest:
    """The values that ask the chart for what an overlay has."""
    settings = (OVERLAYS / ("small" if overlay == "rabbitmq" else overlay) / "ramify.toml").read_text(encoding="utf-8")
    if overlay == "small":
        return {"settings": settings}
    if overlay == "rabbitmq":
        return {"settings": settings, "rabbitmq": {"enabled": True, "bundled": True}}
    policies = yaml.safe_load_all((OVERLAYS / overlay / "network.yaml").read_text(encoding="utf-8"))
    return {
        "settings": settings,
        "redis": {"bundled": False},
        "qdrant": {"bundled": False},
        "pods": {"http": {"replicas": 2}, "ops": {"replicas": 2}},
        "autoscaling": {"enabled": True},
        "metrics": {"enabled": True},
        "networkPolicies": {one["metadata"]["name"]: one["spec"] for one in policies},
    }


def compared(one: Any) -> Any:
    """Without namespaces, the marks that follow settings, and the order of what has names."""
    if isinstance(one, dict):
        return {name: compared(value) for name, value in one.items() if name not in {"namespace", "annotations"}}
    if isinstance(one, list):
        named = all(isinstance(item, dict) and "name" in item for item in one)
        return [compared(item) for item in (sorted(one, key=lambda item: str(item["name"])) if named else one)]
    return re.sub(r"^(ramify(?:-redis|-rabbitmq)?)-[a-z0-9]{10}$", r"\1", one).strip() if isinstance(one, str) else one


@pytest.mark.parametrize("overlay", ["small", "production", "rabbitmq"])
def test_the_chart_makes_what_the_overlay_makes(overlay: str) -> None:
    def by_name(objects: tuple[Manifest, ...]) -> Manifest:
        found = [compared(one) for one in objects]
        return {f"{one['kind']} {one['metadata']['name']}": one for one in found}

    chart, manifests = by_name(charted(as_overlay(overlay))), by_name(rendered(overlay))
    assert set(chart) == set(manifests)
    for name, one in chart.items():
        assert one == manifests[name], name


def test_values_change_what_they_name() -> None:
    before = charted({})
    objects = charted(
        {
            "image": {"repository": "r.example/ramify", "tag": "0.2.0"},
            "settings": "[store]\nkind = 'server'\n",
            "pods": {
                "search": {"threads": 16, "most": 40, "replicas": 3},
                "flower": {"resources": {"limits": {"memory": "1Gi"}}},
            },
            "autoscaling": {"enabled": True, "prometheus": "http://p:9090"},
            "imagePullSecrets": [{"name": "login"}],
        },
        namespace="answers",
    )
    assert of_kind(objects, "ServiceAccount")["ramify"]["imagePullSecrets"] == [{"name": "login"}]
    found = of_kind(objects, "Deployment")
    assert {container(one)["image"] for one in found.values()} == {"r.example/ramify:0.2.0"}
    assert option(workers(objects)["search"], "-c") == "16"
    assert option(workers(objects)["merge"], "-c") == option(workers(before)["merge"], "-c")
    scaled = of_kind(objects, "ScaledObject")["ramify-search"]["spec"]
    assert (scaled["minReplicaCount"], scaled["maxReplicaCount"]) == (3, 40)
    asked = scaled["triggers"][0]["metadata"]
    assert (asked["threshold"], asked["serverAddress"]) == ("16", "http://p:9090")
    assert asked["query"] == 'max(ramify_pool_owed_tasks{namespace="answers", pool="search"})'
    assert "replicas" not in found["ramify-search"]["spec"]
    assert container(found["ramify-flower"])["resources"] == {"limits": {"memory": "1Gi"}}
    assert of_kind(objects, "ConfigMap")["ramify"]["data"]["ramify.toml"].strip() == "[store]\nkind = 'server'"
    marks = [
        one["spec"]["template"]["metadata"]
        for one in (found["ramify-http"], of_kind(before, "Deployment")["ramify-http"])
    ]
    assert marks[0]["annotations"] != marks[1]["annotations"], "pods are exchanged when the settings change"


def test_the_bundled_servers_have_the_size_that_is_asked_for() -> None:
    limits = {"limits": {"memory": "12Gi"}}
    redis = {"bundled": True, "maxmemory": "6gb", "resources": limits, "storage": "40Gi", "storageClass": "fast"}
    qdrant = {"bundled": True, "storage": "90Gi"}
    jsonschema.validate(VALUES | {"redis": redis, "qdrant": qdrant}, SCHEMA)
    objects = charted({"redis": redis, "qdrant": qdrant})
    found, before = of_kind(objects, "StatefulSet"), of_kind(charted({}), "StatefulSet")
    assert container(found["ramify-redis"])["resources"] == limits
    (claim,) = found["ramify-redis"]["spec"]["volumeClaimTemplates"]
    assert claim["spec"] == {
        "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "40Gi"}}, "storageClassName": "fast",
    }  # fmt: skip
    conf = of_kind(objects, "ConfigMap")["ramify-redis"]["data"]["redis.conf"]
    assert re.findall(r"^maxmemory .*", conf, re.MULTILINE) == ["maxmemory 6gb"]
    marks = [one["ramify-redis"]["spec"]["template"]["metadata"]["annotations"] for one in (found, before)]
    assert marks[0] != marks[1], "its pod is exchanged"
    (claim,) = found["ramify-qdrant"]["spec"]["volumeClaimTemplates"]
    assert claim["spec"]["resources"] == {"requests": {"storage": "90Gi"}}
    assert container(found["ramify-qdrant"]) == container(before["ramify-qdrant"])


def test_pods_with_a_configuration_file_are_exchanged_when_it_changes() -> None:
    objects = of_kind(charted(as_overlay("rabbitmq")), "StatefulSet")
    marked = {name: one["spec"]["template"]["metadata"].get("annotations") for name, one in objects.items()}
    for name in ("redis", "rabbitmq"):
        text = (CHART / "files" / f"{name}.conf").read_bytes()
        assert marked[f"ramify-{name}"] == {"checksum/settings": hashlib.sha256(text).hexdigest()}
    assert marked["ramify-qdrant"] is None


def test_the_schema_takes_the_values_that_are_here_and_refuses_others() -> None:
    jsonschema.Draft7Validator.check_schema(SCHEMA)
    example = re.search(r"```yaml\n(.*?)```", (ROOT / "docs" / "kubernetes.md").read_text(encoding="utf-8"), re.DOTALL)
    assert example
    given = yaml.safe_load(example[1])
    merged = {name: value | given.get(name, {}) if isinstance(value, dict) else value for name, value in VALUES.items()}
    assert set(given) <= set(VALUES)
    assert given["networkPolicies"] == as_overlay("production")["networkPolicies"]
    for values in (VALUES, merged):
        jsonschema.validate(values, SCHEMA)
    assert set(SCHEMA["required"]) == set(VALUES)
    for wrong in (
        {"pods": {"serach": {"threads": 16}}},
        {"pods": {"search": {"threads": "16"}}},
        {"pods": {"ops": {"threads": 2}}},
        {"redis": {"bundled": "no"}},
        {"redis": {"bundled": True, "maxmemory": "6Gi"}},
        {"qdrant": {"bundled": True, "maxmemory": "6gb"}},
        {"imagePullSecrets": ["login"]},
        {"autoscaling": {"enabled": True, "prometheus": "p:9090"}},
        {"setings": ""},
    ):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(VALUES | wrong, SCHEMA)


def test_templates_use_files_and_values_that_there_are() -> None:
    text = "".join(TEMPLATES.values())
    files = set(re.findall(r'"((?:files/)?(?:base|components)/[\w/-]+\.yaml|files/(?:redis|rabbitmq)\.conf)"', text))
    assert len(files) > 8
    for name in files:
        assert (CHART / "files" / name.removeprefix("files/")).is_file(), name
    for path in set(re.findall(r"\.Values\.([\w.]+)", text)):
        value: Any = VALUES
        for part in path.split("."):
            assert part in value, path
            value = value[part]
    assert set(SCHEMA["properties"]["pods"]["properties"]) == {
        one["metadata"]["labels"]["app.kubernetes.io/component"]
        for one in of_kind(rendered("small"), "Deployment").values()
    }


def test_the_chart_is_of_the_release_of_the_manifests() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text(encoding="utf-8"))
    pod = yaml.safe_load((OVERLAYS.parent / "base" / "pod.yaml").read_text(encoding="utf-8"))
    assert container(pod)["image"] == f"ramify:{chart['appVersion']}"
