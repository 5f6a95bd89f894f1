"""The manifests for Kubernetes keep the contract, as far as that can be seen without a cluster."""

from __future__ import annotations

import base64
import re
import subprocess
import textwrap
from importlib.util import find_spec
from pathlib import Path

import kubernetes_validate
import pytest
import yaml
from fastapi.routing import APIRoute
from typer.main import get_command

from orchestrator.cli.main import app as cli
from orchestrator.server import health as http_health
from shared.contract import POOL_APPS, POOL_QUEUES, Queue
from shared.settings import load_settings
from shared.settings.sections import JobSettings
from shared.tasks import health
from tests.deploy.manifests import (
    OVERLAYS,
    ROOT,
    Manifest,
    container,
    labels,
    of_kind,
    option,
    outside,
    reaches,
    rendered,
    workers,
    workloads,
)
from tests.deploy.test_compose import interpolated
from tests.deploy.test_watching import ALERTS, KNOWN
from tests.support.redis_server import free_port
from workers.formats.limits import MEMORY_BYTES
from workers.formats.process import MOST_PROCESSES

Objects = tuple[Manifest, ...]
PAGE = (ROOT / "docs" / "kubernetes.md").read_text(encoding="utf-8")
COMPOSE = yaml.safe_load((ROOT / "docker-compose.yml").read_text(encoding="utf-8"))["services"]
SCALED = {"plan", "search", "index", "rerank", "merge"}
STORES = {"ramify-redis", "ramify-qdrant"}
GIVEN = {"RAMIFY_REDIS__URL": "redis://:p@h:6379/0"}
#: Kinds that the cluster's own schemas do not know, and what is needed of their specs.
CUSTOM = {
    "ScaledObject": ("keda.sh/v1alpha1", {"scaleTargetRef", "minReplicaCount", "maxReplicaCount", "triggers"}),
    "ServiceMonitor": ("monitoring.coreos.com/v1", {"selector", "endpoints"}),
}
#: The oldest Kubernetes that the page names, and one of this year.
VERSIONS = ("1.29", kubernetes_validate.latest_version())


@pytest.fixture(params=["small", "production"])
def objects(request: pytest.FixtureRequest) -> Objects:
    return rendered(request.param)


def test_every_object_is_one_that_kubernetes_takes_and_stands_in_the_namespace(objects: Objects) -> None:
    for one in objects:
        if one["kind"] in CUSTOM:
            version, needed = CUSTOM[one["kind"]]
            assert one["apiVersion"] == version
            assert needed <= set(one["spec"])
        else:
            for version in VERSIONS:
                kubernetes_validate.validate(one, version, strict=True)
        assert one["metadata"]["namespace"] == "ramify"
    assert not of_kind(objects, "Namespace"), "`kubectl delete -k` would take secrets and volumes with it"
    assert all(version in PAGE for version in VERSIONS[:1])


def test_every_queue_of_the_contract_is_served_by_one_deployment_with_the_right_app(objects: Objects) -> None:
    apps = {queue.value: POOL_APPS[pool] for pool, queues in POOL_QUEUES.items() for queue in queues}
    found = workers(objects)
    assert set(found) == set(Queue)
    for pool, command in found.items():
        assert (option(command, "-Q"), option(command, "-A")) == (pool, apps[pool])
        assert option(command, "-n") == f"{pool}@%h", "the name that its probes ask for"
        assert int(option(command, "-c")) > 0


def test_the_commands_are_ones_that_there_are(objects: Objects) -> None:
    commands = get_command(cli).commands  # type: ignore[attr-defined]
    for name, workload in of_kind(objects, "Deployment").items():
        command = container(workload)["command"]
        if command[0] == "ramify":
            options = {known for one in commands[command[1]].params for known in one.opts}
            assert {part for part in command[2:] if part.startswith("--")} <= options
        else:
            assert find_spec(option(command, "-m" if "-m" in command else "-A")), name
    flower = container(of_kind(objects, "Deployment")["ramify-flower"])["command"]
    assert flower[:5] == COMPOSE["flower"]["command"][:5], "behind its guard"


def test_the_settings_of_every_pod_are_settings(
    objects: Objects, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    maps, file = of_kind(objects, "ConfigMap"), tmp_path / "ramify.toml"
    for name, workload in of_kind(objects, "Deployment").items():
        if name == "ramify-flower":
            continue
        (mount,) = (one for one in container(workload)["volumeMounts"] if one["name"] == "settings")
        volumes = {one["name"]: one for one in workload["spec"]["template"]["spec"]["volumes"]}
        file.write_text(maps[volumes["settings"]["configMap"]["name"]]["data"][mount["subPath"]])
        with monkeypatch.context() as patch:
            for variable in container(workload)["env"]:
                patch.setenv(variable["name"], variable.get("value", GIVEN.get(variable["name"], "given")))
                assert variable.get("value", mount["mountPath"]) == mount["mountPath"], "RAMIFY_CONFIG"
            patch.setenv("RAMIFY_CONFIG", str(file))
            settings = load_settings()
        assert settings.store.kind == "server"
        assert settings.store.api_key.get_secret_value() == "given"
        token = settings.telemetry.metrics_token.get_secret_value()
        assert token == ("given" if name == "ramify-http" else "")
        assert container(workload)["envFrom"] == [{"secretRef": {"name": "ramify-models", "optional": True}}]


def test_flower_has_no_secret_that_it_does_not_need(objects: Objects) -> None:
    flower = container(of_kind(objects, "Deployment")["ramify-flower"])
    sources = {one["name"]: one["valueFrom"]["secretKeyRef"] for one in flower["env"]}
    assert set(sources) == {"FLOWER_BASIC_AUTH", "RAMIFY_REDIS__URL"}
    assert "envFrom" not in flower
    assert [one["name"] for one in flower["volumeMounts"]] == ["tmp"]


def test_no_value_of_a_secret_is_here_and_the_page_makes_each_that_a_pod_needs(objects: Objects) -> None:
    assert not of_kind(objects, "Secret")
    text = yaml.safe_dump_all(objects)
    wanted = set(re.findall(r"key: (\w+)\n +name: (ramify-\w+)", text))
    for variable in (one for workload in workloads(objects).values() for one in container(workload)["env"]):
        if "secretKeyRef" in variable.get("valueFrom", {}) and variable["name"].startswith("RAMIFY_"):
            assert variable["valueFrom"]["secretKeyRef"]["key"] == variable["name"]
    assert wanted >= {("RAMIFY_REDIS__URL", "ramify-redis"), ("FLOWER_BASIC_AUTH", "ramify-flower")}
    assert wanted <= {(key, secret) for secret, keys in secrets_of_the_page().items() for key in keys}


def secrets_of_the_page() -> dict[str, set[str]]:
    """Secret -> its keys, as the commands of the page make them, but in no cluster."""
    block = re.search(r"^   secret\(\).*?(?=^   ```)", PAGE, re.MULTILINE | re.DOTALL)
    assert block
    commands = textwrap.dedent(block[0]).replace("/dev/stdin", "/dev/stdin --dry-run=client --output=yaml; echo ---")
    done = subprocess.run(("bash", "-euc", commands), capture_output=True, text=True, timeout=30, check=True)
    made = [one for one in yaml.safe_load_all(done.stdout) if one]
    assert all(len(base64.b64decode(value)) > 60 for one in made for value in one["data"].values())
    return {one["metadata"]["name"]: set(one["data"]) for one in made}


def test_every_pod_is_bounded_and_has_no_privileges(objects: Objects) -> None:
    for name, workload in workloads(objects).items():
        pod, one = workload["spec"]["template"]["spec"], container(workload)
        assert pod["automountServiceAccountToken"] is False
        assert pod["enableServiceLinks"] is False, "RAMIFY_HTTP_PORT would be refused as a setting"
        assert pod["securityContext"]["runAsNonRoot"]
        assert pod["securityContext"]["runAsUser"] > 0
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert one["securityContext"] == {
            "allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]},
        }, name  # fmt: skip
        assert set(one["resources"]["limits"]) == set(one["resources"]["requests"]) == {"cpu", "memory"}
        assert {"startupProbe", "readinessProbe", "livenessProbe"} <= set(one)
        assert re.search(r":v?\d+\.\d+\.\d+", one["image"])
        assert all("sizeLimit" in volume["emptyDir"] for volume in pod["volumes"] if "emptyDir" in volume)
    space = yaml.safe_load((OVERLAYS.parent / "base" / "namespace.yaml").read_text(encoding="utf-8"))
    assert space["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "restricted"


def test_pods_of_a_pool_are_spread_over_nodes_and_zones(objects: Objects) -> None:
    for workload in of_kind(objects, "Deployment").values():
        spread = workload["spec"]["template"]["spec"]["topologySpreadConstraints"]
        assert {one["topologyKey"] for one in spread} == {"topology.kubernetes.io/zone", "kubernetes.io/hostname"}
        assert all(one["matchLabelKeys"] == ["app.kubernetes.io/component"] for one in spread)


def test_probes_ask_what_there_is_to_ask(objects: Objects) -> None:
    routes = {route.path for route in http_health.router.routes if isinstance(route, APIRoute)}
    paths = {"ramify-http": routes, "ramify-flower": {"/healthcheck"}, "ramify-qdrant": {"/readyz", "/livez"}}
    for name, workload in workloads(objects).items():
        one = container(workload)
        ports = {port["name"] for port in one.get("ports", [])}
        for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
            if "httpGet" in one[probe]:
                assert one[probe]["httpGet"]["port"] in ports
                assert one[probe]["httpGet"]["path"] in paths[name]
        if "worker" in one.get("command", []):
            live = one["livenessProbe"]["exec"]
            assert live["command"][-1] == 'exec python -P -m shared.tasks.health --live "$POOL"'
            assert one["startupProbe"]["exec"] == live, "a start without Redis is no reason to end it either"
            assert one["readinessProbe"]["exec"]["command"][-1] == live["command"][-1].replace("--live ", "")
            (pool,) = (variable for variable in one["env"] if variable["name"] == "POOL")
            field = pool["valueFrom"]["fieldRef"]["fieldPath"]
            assert field == "metadata.labels['app.kubernetes.io/component']"
    assert container(of_kind(objects, "Deployment")["ramify-http"])["livenessProbe"]["httpGet"]["path"] == "/healthz"


def test_a_worker_is_not_ended_since_redis_does_not_answer(
    redis_url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(health, "_ANSWER_S", 0.2)
    monkeypatch.setenv("RAMIFY_REDIS__URL", redis_url)
    assert health.main("merge", live=True) == 1, "Redis answers, the worker does not"

    def unreachable(_: str) -> bool:
        raise ConnectionRefusedError(f"127.0.0.1:{free_port()}")

    monkeypatch.setattr(health, "answers", unreachable)
    assert (health.main("merge", live=True), health.main("merge")) == (0, 1)
    monkeypatch.setattr(health, "answers", lambda _: load_settings(no_such=1))
    assert health.main("merge", live=True) == 1, "settings that are refused stay so until the pod is made anew"
    assert "cannot be asked" in capsys.readouterr().err


def test_pods_end_after_the_longest_task(objects: Objects) -> None:
    too_long = re.search(r"> (\d+)", next(rule["expr"] for rule in ALERTS if rule["alert"] == "RamifyTaskTooLong"))
    assert too_long
    for name, workload in of_kind(objects, "Deployment").items():
        grace = workload["spec"]["template"]["spec"]["terminationGracePeriodSeconds"]
        if name.removeprefix("ramify-") in set(Queue):
            assert grace > JobSettings().batch_deadline_s, name
            assert grace > int(too_long[1])


def test_the_index_pod_holds_the_parsers_of_all_its_threads() -> None:
    one = container(of_kind(rendered("small"), "Deployment")["ramify-index"])
    parsers = min(int(option(one["command"], "-c")), MOST_PROCESSES) * MEMORY_BYTES
    limit = int(one["resources"]["limits"]["memory"].removesuffix("Gi")) << 30
    assert limit >= parsers + (512 << 20), "the worker would be killed with them"


def test_what_evicts_pods_leaves_three_quarters_of_each_deployment_and_takes_any_that_are_not_ready(
    objects: Objects,
) -> None:
    found = [one["spec"] for one in of_kind(objects, "PodDisruptionBudget").values()]
    assert all(one["maxUnavailable"] == "25%" for one in found)
    assert all(one["unhealthyPodEvictionPolicy"] == "AlwaysAllow" for one in found)
    selectors = [one["selector"]["matchLabels"] for one in found]
    wanted = [dict(labels(one)) for name, one in of_kind(objects, "Deployment").items() if name != "ramify-flower"]
    assert sorted(map(str, selectors)) == sorted(map(str, wanted))


def test_services_lead_to_ports_that_pods_have(objects: Objects) -> None:
    found = of_kind(objects, "Service")
    for service in found.values():
        (workload,) = (one for one in workloads(objects).values() if service["spec"]["selector"] == dict(labels(one)))
        ports = {one["name"]: one["containerPort"] for one in container(workload)["ports"]}
        for port in service["spec"]["ports"]:
            assert ports[port["targetPort"]] == port["port"]
    stateful = of_kind(objects, "StatefulSet")
    assert all(one["spec"]["serviceName"] in found for one in stateful.values())
    assert set(found) == {"ramify-http", *stateful}


def test_only_those_who_need_a_server_reach_it() -> None:
    objects = rendered("small")
    found = workloads(objects)

    def who(target: str, port: int) -> set[str]:
        names = {name for name, one in found.items() if reaches(objects, one, found[target], port)}
        return {name.removeprefix("ramify-") for name in names}

    assert who("ramify-redis", 6379) == {*Queue, "http", "flower"}
    assert who("ramify-qdrant", 6333) == {"search", "index"}
    assert who("ramify-http", 8321) == set()
    assert who("ramify-flower", 5555) == set()
    assert not outside(objects, "Ingress", found["ramify-http"], 8321)
    settings = of_kind(objects, "ConfigMap")
    (own,) = (one for name, one in settings.items() if "ramify.toml" in one["data"])
    assert "http://ramify-qdrant:6333" in own["data"]["ramify.toml"]
    assert "@ramify-redis:6379" in PAGE


def test_with_a_rabbitmq_every_pod_has_its_address_and_reaches_it() -> None:
    small, objects = rendered("small"), rendered("rabbitmq")
    for one in objects:
        if one not in small and one["kind"] not in {"Deployment", "ConfigMap"}:
            for version in VERSIONS:
                kubernetes_validate.validate(one, version, strict=True)
    found = workloads(objects)
    for name, workload in of_kind(objects, "Deployment").items():
        (given,) = (one for one in container(workload)["env"] if one["name"] == "RAMIFY_BROKER__URL")
        assert given["valueFrom"]["secretKeyRef"] == {"name": "ramify-broker", "key": "RAMIFY_BROKER__URL"}
        assert reaches(objects, workload, found["ramify-rabbitmq"], 5672), name
    broker, theirs = container(found["ramify-rabbitmq"]), COMPOSE["rabbitmq"]
    assert broker["image"] == theirs["image"]
    assert {variable["name"] for variable in broker["env"]} == set(theirs["environment"])
    assert {variable["value"] for variable in broker["env"] if "value" in variable} == {"ramify"}
    assert broker["startupProbe"]["exec"]["command"] == theirs["healthcheck"]["test"][1:]
    assert secrets_of_the_page()["ramify-broker"] == {"RAMIFY_BROKER__URL", "RABBITMQ_DEFAULT_PASS"}
    (conf,) = (one["data"] for one in of_kind(objects, "ConfigMap").values() if "rabbitmq.conf" in one["data"])
    assert conf["rabbitmq.conf"] == (ROOT / "deploy" / "rabbitmq" / "rabbitmq.conf").read_text(encoding="utf-8")


def test_nothing_is_open_but_what_a_policy_opens(objects: Objects) -> None:
    assert of_kind(objects, "NetworkPolicy")["deny-all"]["spec"] == {
        "podSelector": {}, "policyTypes": ["Ingress", "Egress"],
    }  # fmt: skip
    for name, workload in workloads(objects).items():
        public = [peer["ipBlock"] for peer in outside(objects, "Egress", workload, 443)]
        assert bool(public) == (name.removeprefix("ramify-") in set(Queue)), name
        for block in public:
            assert {"169.254.0.0/16", "10.0.0.0/8"} <= set(block["except"]), "the cloud's metadata, the cluster"
        assert bool(outside(objects, "Egress", workload, 53)) == (name not in STORES)
        assert not outside(objects, "Ingress", workload, 5555)


def test_production_is_reached_by_prometheus_and_an_ingress_controller_and_reaches_its_stores() -> None:
    objects = rendered("production")
    found = of_kind(objects, "Deployment")
    callers = outside(objects, "Ingress", found["ramify-http"], 8321)
    spaces = {one["namespaceSelector"]["matchLabels"]["kubernetes.io/metadata.name"] for one in callers}
    assert spaces == {"monitoring", "ingress-nginx"}
    for port in (6379, 6380, 26379):
        assert all(outside(objects, "Egress", one, port) for one in found.values()), port
    to_qdrant = {name for name, one in found.items() if outside(objects, "Egress", one, 6333)}
    assert to_qdrant == {"ramify-search", "ramify-index"}
    assert {name: one["spec"].get("replicas") for name, one in found.items() if one["spec"].get("replicas")} == {
        "ramify-http": 2, "ramify-ops": 2,
    }  # fmt: skip
    assert not of_kind(objects, "StatefulSet")


def test_pools_are_scaled_by_the_work_that_is_owed_to_them_and_by_nothing_else() -> None:
    objects = rendered("production")
    commands, scaled = workers(objects), of_kind(objects, "ScaledObject")
    assert set(scaled) == {f"ramify-{pool}" for pool in SCALED}
    for name, one in scaled.items():
        pool, spec = name.removeprefix("ramify-"), one["spec"]
        assert spec["scaleTargetRef"] == {"name": name}
        assert "replicas" not in of_kind(objects, "Deployment")[name]["spec"], "they would be set back by each apply"
        assert 1 <= spec["minReplicaCount"] < spec["maxReplicaCount"]
        (trigger,) = spec["triggers"]
        assert (trigger["type"], trigger["metricType"]) == ("prometheus", "AverageValue"), "ceil(value / threshold)"
        asked = re.fullmatch(r'max\((\w+)\{namespace="ramify", pool="(\w+)"\}\)', trigger["metadata"]["query"])
        assert asked
        assert (asked[1], asked[2]) == ("ramify_pool_owed_tasks", pool)
        assert "pool" in KNOWN[asked[1]]
        assert trigger["metadata"]["threshold"] == option(commands[pool], "-c"), "tasks that a pod runs at once"
        assert trigger["metadata"]["ignoreNullValues"] == "false", "no series is not no work"
        assert trigger["metadata"]["serverAddress"].startswith("http")
    assert not of_kind(objects, "HorizontalPodAutoscaler")


def test_prometheus_finds_the_metrics_and_has_the_token() -> None:
    objects = rendered("production")
    spec = of_kind(objects, "ServiceMonitor")["ramify"]["spec"]
    (service,) = (
        one for one in of_kind(objects, "Service").values()
        if one["metadata"]["labels"].items() >= spec["selector"]["matchLabels"].items()
    )  # fmt: skip
    (endpoint,) = spec["endpoints"]
    assert endpoint["port"] in {port["name"] for port in service["spec"]["ports"]}
    assert endpoint["path"] == "/metrics"
    secret = endpoint["authorization"]["credentials"]
    assert secret == {"name": "ramify-http", "key": "RAMIFY_TELEMETRY__METRICS_TOKEN"}
    jobs = {one["replacement"] for one in endpoint["relabelings"] if one["targetLabel"] == "job"}
    (down,) = (rule["expr"] for rule in ALERTS if rule["alert"] == "RamifyMetricsDown")
    assert jobs
    for pattern in re.findall(r'job=~"([^"]+)"', down) or [""]:
        assert all(re.fullmatch(pattern, job) for job in jobs)


def test_the_bundled_servers_are_those_of_the_compose_file() -> None:
    found = workloads(rendered("small"))
    for name in ("redis", "qdrant"):
        one, theirs = container(found[f"ramify-{name}"]), COMPOSE[name]
        assert one["image"] == theirs["image"]
        fixed = {variable["name"]: variable["value"] for variable in one["env"] if "value" in variable}
        assert fixed.items() <= theirs["environment"].items()
        assert {variable["name"] for variable in one["env"]} == set(theirs["environment"])
    script = [interpolated(part) for part in COMPOSE["redis"]["command"]]
    assert container(found["ramify-redis"])["command"] == script
    (conf,) = (one["data"] for one in of_kind(rendered("small"), "ConfigMap").values() if "redis.conf" in one["data"])
    assert conf["redis.conf"] == (ROOT / "deploy" / "redis" / "redis.conf").read_text(encoding="utf-8")


def test_the_alerts_become_a_rule_of_the_operator_as_the_page_says() -> None:
    command = re.search(r"^(\{ printf.*?\}) \| kubectl apply -f -$", PAGE, re.MULTILINE | re.DOTALL)
    assert command
    done = subprocess.run(("bash", "-c", command[1]), cwd=ROOT, capture_output=True, text=True, timeout=10, check=True)
    rule = yaml.safe_load(done.stdout)
    assert rule["kind"] == "PrometheusRule"
    assert [one for group in rule["spec"]["groups"] for one in group["rules"]] == ALERTS
