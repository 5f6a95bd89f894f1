"""Ports to listen on: the wanted one, the usual one, or any."""

import socket

import pytest

from orchestrator.local import ports
from shared.errors import InputError


@pytest.fixture
def taken():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        yield listener.getsockname()[1]


def test_given_a_taken_port_when_it_is_wanted_then_the_setting_is_named(taken):
    with pytest.raises(InputError, match=rf"^redis.port: {taken} cannot be used: it is taken on 127.0.0.1"):
        ports.pick("redis.port", "127.0.0.1", taken, 6390)


def test_given_a_taken_usual_port_when_none_is_wanted_then_a_free_one_is_found(taken):
    found = ports.pick("redis.port", "127.0.0.1", 0, taken)
    assert found != taken
    assert ports.free_port("127.0.0.1", found) == found


def test_given_a_foreign_address_when_a_port_is_picked_then_the_host_is_named():
    with pytest.raises(InputError, match=r"^flower.host: '192.0.2.1' .*address of this machine"):
        ports.pick("flower.port", "192.0.2.1", 0, 5555)
