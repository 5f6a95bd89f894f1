"""URLs of HTTP servers in settings: a login in one is a secret like any other."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import urlsplit, urlunsplit

from pydantic import AfterValidator, HttpUrl


class LoginUrl(HttpUrl):
    """An HTTP URL that is shown, logged and dumped without its login; `with_login` is for the client alone."""

    def __str__(self) -> str:
        parts = urlsplit(super().__str__())
        return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self)!r})"


def with_login(url: HttpUrl | None) -> str:
    """The whole URL, as it was given; empty without one."""
    return HttpUrl.__str__(url) if url else ""


def _without_login_in_path(url: LoginUrl) -> LoginUrl:
    """A password with "/" in it makes a host of the user's name, and a path of the rest, which is shown."""
    if "@" in f"{url.path}{url.fragment}":
        raise ValueError("there is an @ behind its host: percent-encode what is special in a login (/ is %2F)")
    return url


#: The address of a server that is called.
ServerUrl = Annotated[LoginUrl, AfterValidator(_without_login_in_path)]
