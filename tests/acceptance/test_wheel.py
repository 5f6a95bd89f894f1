"""What `pip install` gives: the wheel in an environment of its own, asked from another folder."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from zipfile import ZipFile

import pytest

from tests.support.redis_server import redis_binary
from tests.support.waiting import until

pytestmark = pytest.mark.timeout(420)

ROOT = Path(__file__).parents[2]
PACKAGES = ("ramify", "shared", "orchestrator", "workers")
INSTALL_S, COMMAND_S = 300, 60
NOTES = {
    "checkout.md": "# Checkout incident\n\nThe checkout slowed down because the order queue was full.\n",
    "backup.md": "# Backups\n\nThe orders database is restored from the nightly backup.\n",
}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built with the tools of the tests' environment, without the package index."""
    folder = tmp_path_factory.mktemp("wheel")
    options = ["--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir", str(folder)]
    subprocess.run([sys.executable, "-m", "pip", "wheel", *options, str(ROOT)], check=True, timeout=COMMAND_S)
    (built,) = folder.glob("ramify-*.whl")
    return built


@pytest.fixture(scope="module", params=["locked", pytest.param("index", marks=pytest.mark.cluster)])
def programs(request: pytest.FixtureRequest, wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of the programs of a fresh environment, with the dependencies of the tests or those that pip chooses."""
    folder = tmp_path_factory.mktemp("fresh")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True, timeout=COMMAND_S)
    python = folder / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", str(python), "--no-input", "--quiet"]
    if request.param == "locked":
        subprocess.run([*pip, "install", "--no-deps", "--no-index", str(wheel)], check=True, timeout=COMMAND_S)
        (site,) = folder.glob("lib/python*/site-packages")
        (site / "locked.pth").write_text(sysconfig.get_path("purelib"), encoding="utf-8")
        return python.parent
    command = [*pip, "install", "--no-compile", str(wheel)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=INSTALL_S, check=False)
    if done.returncode:
        probe = [*pip, "download", "--no-deps", "--no-cache-dir", "--retries", "1", "--dest", str(folder), "packaging"]
        if subprocess.run(probe, capture_output=True, timeout=COMMAND_S, check=False).returncode:
            pytest.skip("the package index cannot be reached")
    assert done.returncode == 0, done.stderr
    subprocess.run([*pip, "check"], check=True, timeout=COMMAND_S)
    return python.parent


@pytest.fixture(scope="module")
def elsewhere(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A working folder with notes in it."""
    folder = tmp_path_factory.mktemp("elsewhere")
    (folder / "notes").mkdir()
    for name, text in NOTES.items():
        (folder / "notes" / name).write_text(text, encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def environment(programs: Path) -> dict[str, str]:
    """As after `activate`. The sources do not show through, but the tests' Redis server does."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "RAMIFY_"))}
    path = os.pathsep.join([str(programs), str(redis_binary().parent), kept.get("PATH", os.defpath)])
    return kept | {"PATH": path, "RAMIFY_FLOWER__ENABLED": "false", "RAMIFY_SERVER__ENABLED": "false"}


@pytest.fixture(scope="module")
def stack(programs: Path, elsewhere: Path, environment: dict[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    """`ramify up`, bound to the process of the tests; it stands when it has written its state."""
    parent, signum = str(os.getpid()), str(int(signal.SIGTERM))
    bound = [str(programs / "python"), "-m", "orchestrator.local.launcher", parent, signum, "--"]
    state, log = elsewhere / "up.json", elsewhere / "up.log"
    with state.open("wb") as out, log.open("wb") as errors:
        command = [*bound, str(programs / "ramify"), "up", "--json"]
        process = subprocess.Popen(command, cwd=elsewhere, env=environment, stdout=out, stderr=errors)
    try:

        def written() -> int:
            assert process.poll() is None, log.read_text()
            return state.stat().st_size

        until(written, 2 * COMMAND_S, f"the stack is ready, see {log}", 0.2)
        yield process
    finally:
        process.terminate()
        process.wait(COMMAND_S)


def test_the_wheel_holds_every_file_of_its_packages(wheel: Path) -> None:
    files = (file for name in PACKAGES for file in (ROOT / name).rglob("*"))
    wanted = {file.relative_to(ROOT).as_posix() for file in files if file.is_file() and "__pycache__" not in file.parts}
    with ZipFile(wheel) as archive:
        held = {name for name in archive.namelist() if ".dist-info/" not in name}
    assert held == wanted
    assert {f"{name}/py.typed" for name in PACKAGES} <= held
    assert {".lua", ".md", ".toml", ".scm"} <= {Path(name).suffix for name in held}


def test_a_question_is_answered_from_another_folder(
    programs: Path, elsewhere: Path, environment: dict[str, str], stack: subprocess.Popen[bytes]
) -> None:
    def ramify(*arguments: str, program: str = "ramify") -> str:
        done = subprocess.run(
            [str(programs / program), *arguments], cwd=elsewhere, env=environment, capture_output=True, text=True,
            timeout=COMMAND_S, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout

    ramify("ingest", "notes")
    answer = json.loads(ramify("ask", "Why did the checkout slow down?", "--json"))
    assert answer["state"] == "done"
    assert "the order queue was full" in answer["summary"]["text"]
    assert answer["summary"]["citations"][0]["path"] == "notes/checkout.md"

    file = ramify("-c", "import ramify; print(ramify.__file__)", program="python")
    assert Path(file).is_relative_to(programs.parent)
    said = ramify(str(ROOT / "examples" / "from_python.py"), "How is the orders database restored?", program="python")
    assert "restored from the nightly backup" in said
    assert "[1] notes/backup.md" in said

    assert json.loads(ramify("down", "--json"))["was_running"]
    assert stack.wait(COMMAND_S) == 0
