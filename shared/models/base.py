"""The base of every model: frozen, and strict about unknown fields."""

from __future__ import annotations

from functools import cache
from typing import Any, Self

from pydantic import BaseModel, ConfigDict


class Model(BaseModel):
    """An immutable value. Unknown fields are refused, so a misspelt option never passes silently."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    @classmethod
    def of_record(cls, raw: str | bytes) -> Self:
        """A value as this or another release has stored or sent it, JSON: fields that are not known are passed over.

        Raises: ValidationError.
        """
        return cls.model_validate_json(raw, extra="ignore")

    @classmethod
    def of_valid(cls, fields: dict[str, Any]) -> Self:
        """A value of all its fields, which are valid and its own now: as `model_construct`, for a tenth of its time."""
        made = cls.__new__(cls)
        object.__setattr__(made, "__dict__", fields)
        object.__setattr__(made, "__pydantic_fields_set__", _all_fields(cls))
        object.__setattr__(made, "__pydantic_extra__", None)
        object.__setattr__(made, "__pydantic_private__", None)
        return made

    def but(self, **changes: Any) -> Self:
        """A copy with some fields changed to valid values: as `model_copy(update=...)`, for a fifth of its time.

        Which fields were given counts for the copy as for this one.
        """
        made = self.__class__.__new__(self.__class__)
        object.__setattr__(made, "__dict__", {**self.__dict__, **changes})
        object.__setattr__(made, "__pydantic_fields_set__", self.__pydantic_fields_set__)
        object.__setattr__(made, "__pydantic_extra__", None)
        object.__setattr__(made, "__pydantic_private__", None)
        return made


@cache
def _all_fields(model: type[Model]) -> set[str]:
    """One for all values: nobody changes it, as nobody changes them."""
    return set(model.model_fields)
