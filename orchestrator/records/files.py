"""Manifests in files: what one installation writes and another one reads."""

from __future__ import annotations

from pathlib import Path

from pydantic import ValidationError

from shared.errors import InputError, shown
from shared.models.manifest import MANIFEST_VERSION, Manifest

#: A manifest of 64 leaves takes a tenth of it.
_MAX_BYTES = 4_000_000


def read_manifest(path: Path, option: str = "--file") -> Manifest:
    """Raises: InputError for what is no manifest, is of a newer release, or was changed since it was written."""
    try:
        with path.open("rb") as file:
            raw = file.read(_MAX_BYTES + 1)
    except OSError as error:
        raise InputError(option, str(path), f"it cannot be read ({error.strerror})") from None
    if len(raw) > _MAX_BYTES:
        raise InputError(option, str(path), f"it has more than {_MAX_BYTES:,} bytes: it is no manifest of Ramify")
    try:
        found = Manifest.model_validate_json(raw)
    except (ValidationError, ValueError) as error:
        first = error.errors()[0] if isinstance(error, ValidationError) else {"msg": str(error), "loc": ()}
        where = ".".join(map(str, first["loc"]))
        fix = f"it is no manifest ({shown(f'{where}: ' if where else '')}{shown(str(first['msg']))})"
        raise InputError(option, str(path), f"{fix}: `ramify manifest ID --out FILE` writes one") from None
    if found.version > MANIFEST_VERSION:
        fix = f"it is of version {found.version}, this release reads {MANIFEST_VERSION}: update Ramify"
        raise InputError(option, str(path), fix)
    if not found.intact:
        raise InputError(option, str(path), "its digest does not fit its record: somebody has changed it")
    return found
