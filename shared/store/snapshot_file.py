"""A snapshot that lies on this machine; of an embedded store it is a tar of its folder.

It has its SHA-256 beside it in FILE.sha256, as `sha256sum` writes it.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tarfile
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pydantic import Field

from shared.errors import InputError, StoreError
from shared.models.base import Model
from shared.store.base import CollectionState
from shared.store.meta import read_meta

_BLOCK = 1 << 18
_ZEROS = bytes(_BLOCK)
#: The folder below the data folder in which snapshots of the embedded store lie.
SNAPSHOTS = "snapshots"


class SnapshotFile(Model):
    """A snapshot. `path`: where it lies on this machine; empty: on the server alone. `created`: as the server says."""

    name: str
    bytes: int = Field(ge=0)
    sha256: str = ""
    created: str = ""
    collection: str = ""
    path: str = ""


class StoreRequest(Model):
    """Asks the process that owns the embedded store for its state, and for a snapshot of that name below SNAPSHOTS."""

    snapshot: str = Field(default="", pattern=r"^(\w[\w.\-]{0,99}\.tar\.gz)?$")


class StoreReply(Model):
    """`state` None: nothing has been ingested."""

    state: CollectionState | None = None
    snapshot: SnapshotFile | None = None
    error: str | None = None


def archive(folder: Path, to: Path) -> SnapshotFile:
    """Write the folder of an embedded store that nobody writes to as a tar, whole or not at all."""
    with whole_file(to) as fresh, tarfile.open(fresh, "w:gz", compresslevel=1) as tar:
        tar.add(folder, arcname=folder.name)  # the engine reserves its files: most of a small store is zeros
    return SnapshotFile(
        name=to.name, bytes=to.stat().st_size, sha256=write_checksum(to), collection=folder.name, path=str(to),
        created=time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime()),
    )  # fmt: skip


def unpacked(path: Path, into: Path) -> Path:
    """Unpack a snapshot of an embedded store below `into`; the store's folder. Raises: InputError, StoreError."""
    check_sum(path, stated_checksum(path))
    try:
        with tarfile.open(path) as tar:
            for member in tar:
                _unpack(tar, tarfile.data_filter(member, str(into)), into)
    except (tarfile.TarError, OSError) as error:
        raise InputError("FILE", str(path), f"it is no snapshot of an embedded store ({error})") from None
    folders = [one for one in into.iterdir() if one.is_dir()]
    if len(folders) != 1:
        raise InputError("FILE", str(path), "it is no snapshot of an embedded store")
    read_meta(folders[0])
    return folders[0]


def _unpack(tar: tarfile.TarFile, member: tarfile.TarInfo, into: Path) -> None:
    """Write one folder or file; of what is only reserved nothing is written, as the engine had it."""
    to = into / member.name
    if member.isdir():
        to.mkdir(parents=True, exist_ok=True)
        return
    content = tar.extractfile(member) if member.isfile() else None
    if content is None:
        raise tarfile.TarError(f"{member.name} is no file")
    to.parent.mkdir(parents=True, exist_ok=True)
    with to.open("xb") as file:
        while block := content.read(_BLOCK):
            if block == _ZEROS[: len(block)]:
                file.seek(len(block), os.SEEK_CUR)
            else:
                file.write(block)
        file.truncate(member.size)


def put_back(path: Path, folder: Path) -> Path | None:
    """Let a snapshot take the place of the store in `folder`, which nobody has open; where that one is now, if any."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{folder.name}-", dir=folder.parent) as aside:
        fresh = unpacked(path, Path(aside))
        before: Path | None = None
        if folder.exists():
            before = folder.with_name(f"{folder.name}.before-{time.strftime('%Y%m%d-%H%M%S', time.gmtime())}")
            folder.rename(before)
        fresh.rename(folder)
    return before


def write_checksum(path: Path) -> str:
    """Write FILE.sha256 beside FILE; the checksum."""
    found = sha256_of(path)
    path.with_name(f"{path.name}.sha256").write_text(f"{found}  {path.name}\n", encoding="utf-8")
    return found


def sha256_of(path: Path) -> str:
    """In hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def stated_checksum(path: Path) -> str:
    """What FILE.sha256 says; empty without one. Raises: InputError without FILE."""
    if not path.is_file():
        raise InputError("FILE", str(path), "there is no such file")
    beside = path.with_name(f"{path.name}.sha256")
    return beside.read_text(encoding="utf-8").split(" ")[0].strip() if beside.is_file() else ""


def check_sum(path: Path, stated: str) -> None:
    if stated and (found := sha256_of(path)) != stated:
        raise StoreError(f"{path} is damaged: its SHA-256 is {found}, not {stated}: take another copy of it")


@contextmanager
def whole_file(to: Path) -> Iterator[Path]:
    """A file to write in place of `to`, which it becomes at the end; nothing is left of it after an error."""
    try:
        to.parent.mkdir(parents=True, exist_ok=True)
        fresh = to.with_name(f".{to.name}.new")
        yield fresh
        shutil.move(fresh, to)
    except OSError as error:
        raise InputError("FILE", str(to), f"{error.strerror or error}: name another") from None
    finally:
        to.with_name(f".{to.name}.new").unlink(missing_ok=True)
