"""Ramify over HTTP: routes made from the operations, errors as problem+json. Needs the extra `ramify[server]`."""
