"""What do the tests of every room share? A still clock, a database of each kind, a closed network."""

from __future__ import annotations

import ipaddress
import logging
import os
import shutil
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from pizzabot.database.connection import Database, PostgresDatabase, SqliteDatabase, postgres_url
from pizzabot.database.migrate import migrate
from pizzabot.database.schema import metadata
from pizzabot.ids import new_id
from tests.fakes.clock import FakeClock

# DBOS writes to the stderr of whoever imports it first, which in a test is one that is soon closed; with a
# handler there already it adds none.
logging.getLogger("dbos").addHandler(logging.NullHandler())

POSTGRES = os.environ.get("PIZZABOT_TEST_POSTGRES", "postgresql://postgres@127.0.0.1:5432/postgres")


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture(autouse=True)
def _umask() -> Iterator[None]:
    """A server sets the umask of its whole process: no test inherits that of the one before."""
    before = os.umask(0o022)
    yield
    os.umask(before)


# -- databases -------------------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def _migrated_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("database") / "app.sqlite"
    migrate("", path)
    return path


@pytest.fixture(scope="session")
def _server() -> Iterator[sa.Engine]:
    """The PostgreSQL server, to create and drop databases; skips the test when none answers."""
    engine = sa.create_engine(
        postgres_url(POSTGRES), isolation_level="AUTOCOMMIT", connect_args={"connect_timeout": 3}
    )
    try:
        with engine.connect():
            pass
    except sa.exc.OperationalError:
        pytest.skip("no PostgreSQL server answers at PIZZABOT_TEST_POSTGRES")
    yield engine
    engine.dispose()


def _create(server: sa.Engine) -> str:
    name = f"pizzabot_test_{new_id().replace('-', '')}"
    with server.connect() as connection:
        connection.exec_driver_sql(f"CREATE DATABASE {name}")
        connection.exec_driver_sql(f"ALTER DATABASE {name} SET synchronous_commit = off")  # only for speed
    return POSTGRES.rpartition("/")[0] + f"/{name}"


def _drop(server: sa.Engine, url: str) -> None:
    with server.connect() as connection:
        connection.exec_driver_sql(f"DROP DATABASE {url.rpartition('/')[2]} WITH (FORCE)")


@pytest.fixture(scope="session")
def _migrated_url(_server: sa.Engine) -> Iterator[str]:
    """One migrated PostgreSQL database for the whole session; each test leaves it empty."""
    url = _create(_server)
    migrate(url, Path())
    yield url
    _drop(_server, url)


@pytest.fixture
def empty_postgres(_server: sa.Engine) -> Iterator[str]:
    """The URL of a PostgreSQL database without any table."""
    url = _create(_server)
    yield url
    _drop(_server, url)


@pytest.fixture(scope="session")
def _cleaner(_migrated_url: str) -> Iterator[Callable[[], None]]:
    engine = sa.create_engine(postgres_url(_migrated_url))

    def clean() -> None:
        with engine.begin() as connection:
            for table in reversed(metadata.sorted_tables):
                connection.execute(sa.delete(table))

    yield clean
    engine.dispose()


@pytest.fixture
def sqlite_path(_migrated_file: Path, tmp_path: Path) -> Path:
    """A migrated SQLite file of the test's own."""
    return Path(shutil.copy(_migrated_file, tmp_path / "app.sqlite"))


@pytest.fixture
def sqlite_database(sqlite_path: Path) -> Iterator[SqliteDatabase]:
    database = SqliteDatabase(sqlite_path)
    yield database
    database.close()


@pytest.fixture(scope="session")
def _kept() -> Iterator[list[PostgresDatabase]]:
    """Connecting and compiling statements takes longer than most tests: the next test goes on with it."""
    kept: list[PostgresDatabase] = []
    yield kept
    for database in kept:
        database.close()


@pytest.fixture
def postgres_database(
    _migrated_url: str, _cleaner: Callable[[], None], _kept: list[PostgresDatabase]
) -> Iterator[PostgresDatabase]:
    if not _kept or _kept[0]._closed:
        _kept[:] = [PostgresDatabase(_migrated_url)]
    yield _kept[0]
    _cleaner()


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest) -> Database:
    """An empty, migrated database: the test runs once on each kind."""
    found: Database = request.getfixturevalue(
        "sqlite_database" if request.param == "sqlite" else "postgres_database"
    )
    return found


# -- the network -----------------------------------------------------------------------------------------


def _is_here(host: str) -> bool:
    if host in ("", "localhost", "localhost.localdomain", "ip6-localhost"):
        return True
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return False
    return address.is_loopback or address.is_unspecified


class NetworkIsClosed(OSError):
    """A test tried to leave this machine."""


@pytest.fixture(autouse=True)
def _no_network(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Fail a test that connects to anything but this machine, also where the error is handled."""
    tried: list[str] = []

    def refuse(host: object) -> None:
        text = host.decode("ascii", "replace") if isinstance(host, bytes) else str(host or "")
        if not _is_here(text):
            tried.append(text)
            raise NetworkIsClosed(f"tests stay on this machine, and this one asked for {text}")

    def guarded(original: Callable[..., Any]) -> Callable[..., Any]:
        def connect(self: socket.socket, address: Any) -> Any:
            if self.family in (socket.AF_INET, socket.AF_INET6):
                refuse(address[0])
            return original(self, address)

        return connect

    look_up = socket.getaddrinfo

    def getaddrinfo(host: Any, *args: Any, **options: Any) -> Any:
        refuse(host)
        return look_up(host, *args, **options)

    monkeypatch.setattr(socket.socket, "connect", guarded(socket.socket.connect))
    monkeypatch.setattr(socket.socket, "connect_ex", guarded(socket.socket.connect_ex))
    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    yield
    if tried:
        pytest.fail(f"the test asked for {', '.join(tried)}; tests stay on this machine")
