"""The stack's state file, its lock, and processes told apart by more than their pid."""

import errno
import os
import signal
import stat
import subprocess
import sys
from datetime import UTC, datetime

import pytest

from orchestrator.local.background import clear_leftovers, down
from orchestrator.local.state import (
    ChildState,
    StackState,
    connection,
    make_folders,
    only_one,
    read_state,
    rotate,
    rotate_large,
    run_dir,
    running,
    tail,
    write_state,
)
from shared.connections.process import alive, identity, signal_process, wait_gone
from shared.errors import InputError, NotRunningError, RamifyError
from shared.settings import Settings, load_settings


@pytest.fixture
def settings(tmp_path) -> Settings:
    found = load_settings(data_dir=tmp_path / "data")
    make_folders(found)
    return found


@pytest.fixture
def sleeper():
    process = subprocess.Popen((sys.executable, "-c", "import time; time.sleep(60)"), start_new_session=True)
    yield process
    process.kill()
    process.wait()


def state_of(pid: int, mark: str, **fields) -> StackState:
    return StackState(pid=pid, mark=mark, started_at=datetime.now(UTC), **fields)


def own_state(**fields) -> StackState:
    return state_of(os.getpid(), identity(os.getpid()) or "", **fields)


def test_given_a_living_process_when_its_mark_is_another_then_it_is_a_stranger_and_not_signalled(sleeper):
    mark = identity(sleeper.pid)
    assert mark
    assert alive(sleeper.pid, mark)
    assert not alive(sleeper.pid, "an earlier process")
    assert not signal_process(sleeper.pid, "an earlier process", signal.SIGKILL)
    assert sleeper.poll() is None


def test_given_a_zombie_when_asked_then_it_is_gone(sleeper):
    mark = identity(sleeper.pid) or ""
    os.kill(sleeper.pid, signal.SIGKILL)  # not reaped yet
    assert wait_gone([(sleeper.pid, mark)], 10) == []
    assert identity(sleeper.pid) is None


def test_given_a_busy_process_when_the_wait_ends_then_it_is_named(sleeper):
    mark = identity(sleeper.pid) or ""
    assert wait_gone([(sleeper.pid, mark)], 0) == [(sleeper.pid, mark)]


def test_given_a_state_when_written_then_only_its_owner_reads_it_and_it_comes_back(settings):
    state = own_state(redis_url="redis://127.0.0.1:6390/0", ready=True)
    write_state(settings, state)
    file = run_dir(settings) / "stack.json"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert read_state(settings) == state
    assert sorted(path.name for path in file.parent.iterdir()) == ["stack.json"]


@pytest.mark.parametrize("text", ["", "{", "[]", '{"pid": "x"}'])
def test_given_a_broken_state_file_when_read_then_nothing_runs(settings, text):
    (run_dir(settings) / "stack.json").write_text(text)
    assert running(settings) is None
    assert not down(settings).was_running


def test_given_a_held_lock_when_a_second_stack_starts_then_one_sentence_names_the_first(settings):
    write_state(settings, own_state())
    sentence = rf"already runs in .*process {os.getpid()}.*ramify down"
    with only_one(settings), pytest.raises(RamifyError, match=sentence), only_one(settings):
        pass
    with only_one(settings):
        pass  # free again


def test_given_no_stack_when_connecting_then_the_sentence_says_how_to_start_it(settings):
    with pytest.raises(NotRunningError, match=r"Ramify is not running here: start it with `ramify up -d` \(looked in"):
        connection(settings)


def test_given_a_starting_stack_when_connecting_then_the_sentence_says_so(settings):
    write_state(settings, own_state())
    with pytest.raises(NotRunningError, match="still starting"):
        connection(settings)


def test_given_a_running_stack_when_connecting_then_its_redis_is_filled_in(settings):
    write_state(settings, own_state(redis_url="redis://127.0.0.1:7001/0"))
    assert connection(settings).redis.url.get_secret_value() == "redis://127.0.0.1:7001/0"


def test_given_a_redis_of_their_own_when_connecting_then_it_stays(tmp_path):
    settings = load_settings(data_dir=tmp_path, redis={"url": "redis://db.example:6379/1"})
    assert connection(settings) is settings


def test_given_a_stack_with_another_broker_when_connecting_then_the_sentence_names_it(settings):
    label = "RabbitMQ at rabbit.example:5672, virtual host 'ramify'"
    write_state(settings, own_state(redis_url="redis://h:1/0", broker=label))
    with pytest.raises(NotRunningError, match=r"with RabbitMQ at rabbit\.example.*: set broker\.url as it has it"):
        connection(settings)
    over = load_settings(data_dir=settings.data_dir, broker={"url": "amqp://ann:s3cret@rabbit.example/ramify"})
    assert connection(over).redis.url.get_secret_value() == "redis://h:1/0"


def test_given_a_killed_supervisor_when_clearing_then_its_children_end_and_strangers_live(settings, sleeper):
    stranger = subprocess.Popen((sys.executable, "-c", "import time; time.sleep(60)"))
    try:
        ours = ChildState(name="plan", pid=sleeper.pid, mark=identity(sleeper.pid) or "", log="")
        recycled = ChildState(name="merge", pid=stranger.pid, mark="an earlier process", log="")
        write_state(settings, state_of(4_000_000, "gone", children=(ours, recycled)))
        assert clear_leftovers(settings) == ["plan"]
        assert sleeper.wait(timeout=10) == -signal.SIGKILL
        assert stranger.poll() is None
        assert read_state(settings) is None
    finally:
        stranger.kill()
        stranger.wait()


def test_given_nothing_when_down_is_called_then_it_says_so_at_once(settings):
    assert down(settings).model_dump(exclude={"seconds"}) == {"was_running": False, "killed": ()}


def test_given_a_data_folder_under_a_file_when_made_then_the_setting_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match=r"^data_dir: .*name a folder that can be written"):
        make_folders(load_settings(data_dir=tmp_path / "file" / "data"))


def test_given_folders_that_exist_but_take_no_file_when_made_then_the_setting_is_named(tmp_path, monkeypatch):
    settings = load_settings(data_dir=tmp_path / "data")
    make_folders(settings)

    def refuse(**_):
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr("orchestrator.local.state.tempfile.TemporaryFile", refuse)
    with pytest.raises(InputError, match=r"^data_dir: .*can be written \(Read-only file system\)"):
        make_folders(settings)


def test_given_many_starts_when_rotated_then_the_last_five_are_kept_in_order(tmp_path):
    log = tmp_path / "plan.log"
    for start in range(9):
        log.write_text(f"start {start}")
        rotate(log)
    kept = {path.name: path.read_text() for path in tmp_path.iterdir()}
    assert kept == {f"plan.log.{number}": f"start {9 - number}" for number in range(1, 6)}


def test_given_a_large_log_that_is_written_to_when_rotated_then_its_end_is_kept_and_the_writer_goes_on(
    tmp_path, monkeypatch
):
    monkeypatch.setattr("orchestrator.local.state._LOG_BYTES", 1000)
    log = tmp_path / "plan.log"
    with log.open("ab", buffering=0) as writer:
        writer.write(b"small\n")
        rotate_large(log)
        assert log.read_bytes() == b"small\n"
        for line in range(300):
            writer.write(b"line %3d\n" % line)
        rotate_large(log)
        assert log.read_bytes() == b""
        writer.write(b"after\n")
    assert log.read_bytes() == b"after\n"
    older = (tmp_path / "plan.log.1").read_bytes()
    assert (len(older), older.endswith(b"line 299\n")) == (1000, True)
    rotate_large(tmp_path / "none.log")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["plan.log", "plan.log.1"]


def test_given_a_log_when_rotated_then_the_last_run_is_kept_and_the_tail_is_the_end(tmp_path):
    log = tmp_path / "plan.log"
    log.write_text("\n".join(map(str, range(5000))))
    assert tail(log, 2) == "4998\n4999"
    rotate(log)
    rotate(log)  # nothing to rotate is no fault
    assert not log.exists()
    assert (tmp_path / "plan.log.1").exists()
    assert tail(log) == ""
