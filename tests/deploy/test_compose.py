"""The compose file keeps the contract, as far as that can be seen without a Docker engine."""

from __future__ import annotations

import re
import stat
import subprocess
import sys
import tomllib
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from pathlib import Path
from threading import Thread

import pytest
import yaml
from typer.main import get_command

from orchestrator.cli.main import app as cli
from orchestrator.local.redis_binary import missing_fixes
from shared.contract import POOL_APPS, POOL_QUEUES, Queue
from shared.settings import Settings, load_settings
from shared.tasks import health

ROOT = Path(__file__).parents[2]
COMPOSE = yaml.safe_load((ROOT / "docker-compose.yml").read_text(encoding="utf-8"))
SERVICES = COMPOSE["services"]
#: Those that run our image; Flower gets no settings but Redis.
OURS = {name for name, service in SERVICES.items() if "build" in service}
WATCHERS = {"prometheus", "grafana", "otel"}
#: What Compose 2.24 knows of a service, as far as it is used here.
KNOWN = {
    "build", "cap_drop", "command", "cpus", "depends_on", "entrypoint", "env_file", "environment", "healthcheck",
    "hostname", "image", "init", "logging", "mem_limit", "networks", "pids_limit", "ports", "profiles", "read_only",
    "restart", "security_opt", "stop_grace_period", "tmpfs", "user", "volumes",
}  # fmt: skip
GIVEN = {
    "REDIS_PASSWORD": "r3dis", "QDRANT_API_KEY": "qdr4nt", "METRICS_TOKEN": "m3trics", "GRAFANA_PASSWORD": "gr4fana",
    "FLOWER_LOGIN": "user:fl0wer",
}  # fmt: skip


def interpolated(value: str) -> str:
    """As Compose does it, with what the head of the file makes."""
    instead = r"\$\{(\w+):\+((?:[^{}]|\{[^}]*\})*)\}"
    value = re.sub(instead, lambda name: name[2] if GIVEN.get(name[1]) else "", value)
    found = re.sub(r"\$\{(\w+)(?::[-?]([^}]*))?\}", lambda name: GIVEN.get(name[1]) or name[2] or "", value)
    return found.replace("$$", "$")


def workers() -> dict[str, tuple[str, str]]:
    """Service -> (Celery app, queue)."""
    found = {}
    for name, service in SERVICES.items():
        command = service.get("command", [])
        if "worker" in command:
            found[name] = (command[command.index("-A") + 1], command[command.index("-Q") + 1])
    return found


def test_every_queue_of_the_contract_is_served_by_one_service_with_the_right_app() -> None:
    apps = {queue.value: POOL_APPS[pool] for pool, queues in POOL_QUEUES.items() for queue in queues}
    assert sorted(queue for _, queue in workers().values()) == sorted(queue.value for queue in Queue)
    assert {name: app for name, (app, _) in workers().items()} == {
        name: apps[queue] for name, (_, queue) in workers().items()
    }


def test_the_file_says_only_what_compose_knows_and_names_only_what_is_there() -> None:
    for name, service in SERVICES.items():
        assert set(service) <= KNOWN, name
        assert set(service["networks"]) <= set(COMPOSE["networks"])
        for other, wanted in service.get("depends_on", {}).items():
            apart = set(SERVICES[other].get("profiles", ())) - set(service.get("profiles", ()))
            optional = {"required": False} if apart else {}
            assert wanted == {"condition": "service_healthy", **optional}
            assert "healthcheck" in SERVICES[other]
        for volume in service.get("volumes", []):
            source = volume["source"] if isinstance(volume, dict) else volume.split(":")[0]
            assert source in COMPOSE["volumes"] or source == "./compose.toml" or (ROOT / source).exists(), source
    volumes = {"redis-data", "qdrant-data", "rabbitmq-data", "prometheus-data", "grafana-data"}
    assert set(COMPOSE["volumes"]) == volumes


def test_nothing_listens_beyond_loopback() -> None:
    ports = [port for service in SERVICES.values() for port in service.get("ports", [])]
    assert ports
    assert all(port.startswith("127.0.0.1:") for port in ports)
    assert len({port.split(":")[1] for port in ports}) == len(ports)


@pytest.mark.parametrize("name", sorted(OURS - {"flower"}))
def test_the_settings_of_a_service_are_the_files_and_every_setting_can_reach_it(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = SERVICES[name]
    for variable, value in service["environment"].items():
        monkeypatch.setenv(variable, interpolated(value))
    monkeypatch.setenv("RAMIFY_CONFIG", str(ROOT / "deploy" / "compose" / "ramify.toml"))
    monkeypatch.setenv("RAMIFY_ENABLE_SUMMARY", "true")
    settings = load_settings()
    assert settings.store.kind == "server"
    assert settings.store.api_key.get_secret_value() == "qdr4nt"
    assert settings.redis.url.get_secret_value() == "redis://:r3dis@redis:6379/0"
    assert settings.enable_summary, "what stands in compose.env reaches it"
    assert settings.telemetry.metrics_token.get_secret_value() == ("m3trics" if name == "http" else "")
    assert settings.server.hosts == (("http",) if name == "http" else ()), "the name that Prometheus asks for"
    assert service["env_file"] == [{"path": "compose.env", "required": False}]
    (settings_file,) = service["volumes"]
    assert (settings_file["target"], settings_file["read_only"]) == (service["environment"]["RAMIFY_CONFIG"], True)
    assert settings_file["bind"] == {"create_host_path": False}, "else a folder is made of a file that is missing"
    assert service["user"] == "${RAMIFY_UID:-10001}", "a settings file of another user is refused"


def test_the_variables_that_are_offered_are_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = (ROOT / "deploy" / "compose" / "ramify.env").read_text(encoding="utf-8").splitlines()
    names = [line.partition("=")[0] for line in lines if line and not line.startswith("#")]
    assert "RAMIFY_ENABLE_SUMMARY" in names
    for name in names:
        section = Settings
        for part in name.removeprefix("RAMIFY_").lower().split("__"):
            section = section.model_fields[part].annotation  # type: ignore[assignment, union-attr]
        monkeypatch.setenv(name, "")
    load_settings()


def test_the_head_makes_every_password_that_must_be_set() -> None:
    text = (ROOT / "docker-compose.yml").read_text(encoding="utf-8")
    head = "".join(line for line in text.splitlines(keepends=True) if line.startswith("#"))
    wanted = set(re.findall(r"\$\{(\w+):\?", text))
    assert wanted == set(GIVEN)
    assert all(name in head for name in wanted)
    assert "install -m 644 deploy/compose/ramify.toml" in head, "root's file is read by a service that is not root"
    assert head.index("keys create") < head.index("up -d"), "beyond loopback HTTP starts with a key alone"
    for copied in re.findall(r"(?:cp|install -m 644) (\S+) (\S+)", head):
        assert (ROOT / copied[0]).exists()
        assert f"{copied[1]}\n" in (ROOT / ".gitignore").read_text(encoding="utf-8")
        assert f"{copied[1]}\n" in (ROOT / ".dockerignore").read_text(encoding="utf-8")


def test_flower_runs_behind_its_guard_and_has_no_secret_that_it_does_not_need() -> None:
    flower = SERVICES["flower"]
    assert flower["command"][:4] == ["python", "-P", "-m", "orchestrator.monitor"]
    assert set(flower["environment"]) == {"RAMIFY_REDIS__URL", "RAMIFY_BROKER__URL", "FLOWER_BASIC_AUTH"}
    assert ":?" in flower["environment"]["FLOWER_BASIC_AUTH"]
    assert (flower["env_file"], flower["volumes"]) == ([], [])


def test_redis_and_qdrant_want_credentials_that_every_user_must_set() -> None:
    for value in (
        SERVICES["redis"]["environment"]["REDISCLI_AUTH"],
        SERVICES["qdrant"]["environment"]["QDRANT__SERVICE__API_KEY"],
        SERVICES["grafana"]["environment"]["GF_SECURITY_ADMIN_PASSWORD"],
        *(SERVICES[name]["environment"]["RAMIFY_REDIS__URL"] for name in OURS),
        *(SERVICES[name]["environment"]["RAMIFY_STORE__API_KEY"] for name in OURS - {"flower"}),
    ):
        assert re.search(r"\$\{[A-Z_]+:\?", value)


def test_only_those_who_need_redis_or_qdrant_can_reach_them() -> None:
    def on(network: str) -> set[str]:
        return {name for name, service in SERVICES.items() if network in service["networks"]}

    assert on("redis") == {"redis", "rabbitmq", *OURS}
    assert on("qdrant") == {"qdrant", "search", "index", "cli"}
    assert on("watch") == {*OURS - {"flower"}, *WATCHERS}
    assert not on("outside") & {"redis", "qdrant", "rabbitmq"}
    assert all(COMPOSE["networks"][name] == {"internal": True} for name in ("redis", "qdrant", "watch"))
    published = {name for name, service in SERVICES.items() if "ports" in service}
    assert published == {"http", "flower", "prometheus", "grafana"}
    assert all("outside" in SERVICES[name]["networks"] for name in published), "an internal network publishes nothing"


def test_every_service_is_bounded_healthy_and_has_no_privileges() -> None:
    for name, service in SERVICES.items():
        assert {"mem_limit", "cpus", "pids_limit", "logging"} <= set(service), name
        assert service["logging"]["options"] == {"max-size": "10m", "max-file": "5"}
        assert service["cap_drop"] == ["ALL"]
        assert service["security_opt"] == ["no-new-privileges:true"]
        assert service["read_only"]
        assert name in {"cli", "otel"} or "healthcheck" in service, name
        assert re.search(r":v?\d+\.\d+\.\d+", interpolated(service["image"])), f"{name} is not pinned"
    assert {name for name, service in SERVICES.items() if "observability" in service.get("profiles", [])} == WATCHERS


def test_the_images_of_redis_are_one_release_with_the_known_fixes() -> None:
    files = [ROOT / "docker-compose.yml", *(ROOT / "deploy").rglob("*.yaml"), *(ROOT / "docs").glob("*.md")]
    found = {tag for file in files for tag in re.findall(r"redis:(\d[\d.]*)-alpine", file.read_text(encoding="utf-8"))}
    (release,) = found
    assert missing_fixes("Redis", tuple(map(int, release.split(".")))) == ""


def test_workers_have_the_time_that_their_tasks_may_take_and_servers_the_sizes_of_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in workers():
        grace = int(SERVICES[name]["stop_grace_period"].removesuffix("s"))
        jobs = load_settings().jobs
        assert grace > (7200 if name == "index" else jobs.batch_deadline_s), name
    sizes = {"redis": "REDIS_MEMORY", "qdrant": "QDRANT_MEMORY", "index": "INDEX_MEMORY"}
    for name, variable in sizes.items():
        monkeypatch.setitem(GIVEN, variable, "9g")
        assert interpolated(SERVICES[name]["mem_limit"]) == "9g"
    monkeypatch.setitem(GIVEN, "RAMIFY_TAG", "9.9.9")
    assert {interpolated(SERVICES[name]["image"]) for name in OURS} == {"ramify:9.9.9"}


def test_prometheus_gets_its_token_as_a_file_of_its_own(tmp_path: Path) -> None:
    prometheus = SERVICES["prometheus"]
    assert "secrets" not in prometheus, "Compose cannot copy one into a read-only root"
    config = yaml.safe_load((ROOT / "deploy" / "prometheus" / "prometheus.yml").read_text(encoding="utf-8"))
    (scrape,) = config["scrape_configs"]
    token = tmp_path / Path(scrape["authorization"]["credentials_file"]).name
    (tmp_path / "prometheus").write_text("#!/bin/sh\necho $1\n")
    (tmp_path / "prometheus").chmod(0o755)
    shell, option, script = prometheus["entrypoint"]
    script = script.replace("$$", "$").replace(scrape["authorization"]["credentials_file"], str(token))
    env = {name: interpolated(value) for name, value in prometheus["environment"].items()}
    env["PATH"] = f"{tmp_path}:/usr/bin:/bin"
    done = subprocess.run((shell, option, script), env=env, capture_output=True, text=True, timeout=10, check=True)
    assert done.stdout == "--config.file=/etc/prometheus/prometheus.yml\n"
    assert (token.read_text(), stat.S_IMODE(token.stat().st_mode)) == ("m3trics", 0o600)


def test_with_a_password_for_rabbitmq_it_carries_the_messages_of_all(monkeypatch: pytest.MonkeyPatch) -> None:
    rabbitmq = SERVICES["rabbitmq"]
    assert rabbitmq["profiles"] == ["rabbitmq"]
    monkeypatch.setitem(GIVEN, "RABBITMQ_PASSWORD", "r4bbit")
    login = {name: interpolated(value) for name, value in rabbitmq["environment"].items()}
    for name in OURS:
        url = interpolated(SERVICES[name]["environment"]["RAMIFY_BROKER__URL"])
        assert url == (
            f"amqp://{login['RABBITMQ_DEFAULT_USER']}:{login['RABBITMQ_DEFAULT_PASS']}@rabbitmq:5672/"
            f"{login['RABBITMQ_DEFAULT_VHOST']}"
        )
        assert "rabbitmq" in SERVICES[name]["depends_on"]
    text = (ROOT / "docker-compose.yml").read_text(encoding="utf-8")
    assert "'RABBITMQ_PASSWORD=%s\\nCOMPOSE_PROFILES=rabbitmq\\n'" in text
    monkeypatch.delitem(GIVEN, "RABBITMQ_PASSWORD")
    assert interpolated(SERVICES["http"]["environment"]["RAMIFY_BROKER__URL"]) == "", "Redis does it"


@pytest.mark.parametrize("password", ["", "r4bbit"])
def test_rabbitmq_starts_with_a_password_alone(password: str, tmp_path: Path) -> None:
    started = tmp_path / "docker-entrypoint.sh"
    started.write_text("#!/bin/sh\necho starts $1\n")
    started.chmod(0o755)
    script = SERVICES["rabbitmq"]["entrypoint"][2].replace("$$", "$")
    env = {"RABBITMQ_DEFAULT_PASS": password, "PATH": f"{tmp_path}:/usr/bin:/bin"}
    done = subprocess.run(("sh", "-c", script), env=env, capture_output=True, text=True, timeout=10, check=False)
    said = "" if password else "RABBITMQ_PASSWORD is empty: set it in .env\n"
    assert (done.stderr, done.returncode == 0) == (said, bool(password))
    assert done.stdout == ("starts rabbitmq-server\n" if password else "")


def test_workers_are_asked_themselves_whether_they_are_well() -> None:
    for name in workers():
        assert SERVICES[name]["healthcheck"]["test"] == ["CMD", "python", "-P", "-m", "shared.tasks.health", name]
        command = SERVICES[name]["command"]
        assert command[command.index("-n") + 1] == f"{name}@%h", "the name that its health check asks for"
        assert int(interpolated(command[command.index("-c") + 1])) > 0


def test_a_worker_that_nobody_has_started_is_not_well(
    redis_url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("RAMIFY_REDIS__URL", redis_url)
    monkeypatch.setattr(health, "_ANSWER_S", 0.2)
    assert health.main("merge") == 1
    assert "does not answer" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["qdrant", "http", "flower"])
@pytest.mark.parametrize(("status", "well"), [(200, True), (503, False), (0, False)])
def test_the_health_checks_of_servers_tell_one_that_is_well(name: str, status: int, *, well: bool) -> None:
    """Run as the file has them, but for the port."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status if self.path in {"/readyz", "/healthcheck"} else 404)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Says nothing."""

    _, program, *arguments = map(interpolated, SERVICES[name]["healthcheck"]["test"])
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        port = str(server.server_address[1]) if status else "1"
        arguments = [re.sub(r"6333|8321|5555", port, argument) for argument in arguments]
        command = (sys.executable if program == "python" else program, *arguments)
        done = subprocess.run(command, timeout=10, capture_output=True, check=False)
        server.shutdown()
    assert (done.returncode == 0) == well


def test_the_commands_are_ones_that_there_are() -> None:
    commands = get_command(cli).commands  # type: ignore[attr-defined]
    for name in OURS:
        command = SERVICES[name]["command"]
        if command[0] == "ramify":
            options = {option for one in commands[command[1]].params for option in one.opts}
            assert {part for part in command[2:] if part.startswith("--")} <= options
        elif "-m" in command:
            assert find_spec(command[command.index("-m") + 1])
        elif name != "cli":
            assert find_spec(command[command.index("-A") + 1])
    assert SERVICES["cli"]["command"][0] in commands


def test_the_image_is_built_from_pinned_packages_runs_as_nobody_and_has_what_it_needs() -> None:
    lines = (ROOT / "deploy" / "Dockerfile").read_text(encoding="utf-8").splitlines()
    assert {line for line in lines if line.startswith("USER")} == {"USER 10001"}
    assert any("--require-hashes" in line for line in lines)
    images = {line.split()[1] for line in lines if line.startswith("FROM")}
    assert len(images) == 1
    assert re.fullmatch(r"python:\d+\.\d+\.\d+-slim-bookworm", images.pop())
    rooms = set(
        tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
    )
    assert {line.split()[1] for line in lines if line.startswith("COPY") and len(line.split()) == 3} >= rooms
    pinned = (ROOT / "requirements.txt").read_text(encoding="utf-8")
    assert all(f"\n{name}==" in pinned for name in ("fastapi", "uvicorn", "mcp", "opentelemetry-sdk", "flower"))
