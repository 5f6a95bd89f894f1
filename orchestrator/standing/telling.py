"""Gives notices: adds them to files, hands them to programs of the settings. Webhooks have a sender of their own.

A notice stays on the list until it was given, so one may be given twice after a kill; its id is the same then. One that
cannot be given is given up after some tries: it stands in the list of notices all the same.
"""

from __future__ import annotations

import logging
import os
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from orchestrator.standing.questions import StandingQuestions
from shared.jobs import JobStore
from shared.jobs.keys import StandingKeys
from shared.models.standing import Notice, NotifyBy, StandingQuestion
from shared.trusted_paths import opened

log = logging.getLogger("ramify.standing")
TELL_EVERY_S = 1.0
_COMMAND_S = 30.0
_TRIES = 3
_AT_ONCE = 20
#: Of the worker's environment, what a program gets: no secrets of settings.
_ENVIRONMENT = ("PATH", "HOME", "LANG", "LC_ALL", "TZ", "USER")


class Telling:
    """Gives the notices of all standing questions, the oldest first."""

    def __init__(self, jobs: JobStore) -> None:
        self._client, self._settings = jobs.client, jobs.settings
        self._questions = StandingQuestions(jobs.client, jobs.settings)
        self._tries: dict[str, int] = {}

    def run(self) -> None:
        """Give those that are waiting. Raises: RedisError."""
        waiting: Any = self._client.lrange(StandingKeys.to_tell, 0, _AT_ONCE - 1)
        for raw in waiting:
            if not self._client.set(StandingKeys.telling, "1", nx=True, ex=int(2 * _COMMAND_S)):
                return
            try:
                if self._given(raw):
                    self._client.lrem(StandingKeys.to_tell, 1, raw)
            finally:
                self._client.delete(StandingKeys.telling)

    def _given(self, raw: bytes) -> bool:
        """True for one that is done with."""
        try:
            notice = Notice.of_record(raw)
        except ValidationError:
            return True
        question = self._questions.kept(notice.standing_id)
        notify = question.notify if question is not None else None
        ways: Mapping[NotifyBy, Callable[[StandingQuestion, str, Notice], None]] = {
            NotifyBy.FILE: self._write,
            NotifyBy.COMMAND: self._command,
        }
        if question is None or notify is None or notify.by not in ways:
            return True
        try:
            ways[notify.by](question, notify.target, notice)
        except (OSError, subprocess.SubprocessError) as error:
            tries = self._tries[notice.id] = self._tries.get(notice.id, 0) + 1
            log.warning("notice %s could not be given by %s, try %d: %s", notice.id, notify.by, tries, error)
            return tries >= _TRIES
        return True

    def _write(self, question: StandingQuestion, target: str, notice: Notice) -> None:
        if not self._questions.may_write(question):
            raise PermissionError("the file was not named by the user who started the stack")
        handle = opened(Path(target), os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        with os.fdopen(handle, "ab") as file:
            file.write(notice.model_dump_json().encode() + b"\n")

    def _command(self, _: StandingQuestion, target: str, notice: Notice) -> None:
        words = self._settings.standing.commands.get(target)
        if words is None:
            raise FileNotFoundError(f"standing.commands has no {target}")
        run_program(words, notice.model_dump_json().encode())


def run_program(words: Sequence[str], given: bytes) -> None:
    """Run a program with its arguments as they stand, no shell, the notice on its input.

    Raises: OSError, SubprocessError when it cannot be started, fails or takes too long.
    """
    own: dict[str, Any] = {name: os.environ[name] for name in _ENVIRONMENT if name in os.environ}
    subprocess.run(
        list(words), input=given, env=own, cwd="/", timeout=_COMMAND_S, check=True, shell=False,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip
