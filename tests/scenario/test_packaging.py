"""Sdist and wheel hold the whole product: the demo runs from the wheel, in an environment of its own."""

from __future__ import annotations

import json
import os
import site
import subprocess
import sys
import time
import tomllib
import urllib.request
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def test_every_package_is_listed_and_exists() -> None:
    listed = set(PROJECT["tool"]["setuptools"]["packages"])
    found = {
        ".".join(("pizzabot", *path.parent.relative_to(ROOT / "pizzabot").parts))
        for path in (ROOT / "pizzabot").rglob("__init__.py")
    }
    adapters = {
        ".".join(("pizzabot.adapters", *path.parent.relative_to(ROOT / "adapters").parts))
        for path in (ROOT / "adapters").rglob("__init__.py")
    }
    data = {"pizzabot.builtin_skills", "pizzabot.templates"}
    assert listed == found | adapters | data


def run(*command: str | Path, cwd: Path, **environ: str) -> str:
    done = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env={**os.environ, **environ},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from the sdist, as it would be published."""
    out = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", out, ROOT, cwd=out)
    assert [path.name for path in out.glob("*.tar.gz")] != []
    (built,) = out.glob("*.whl")
    return built


def test_the_wheel_holds_code_adapters_skills_templates_and_migrations(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    for path in (
        "pizzabot/py.typed",
        "pizzabot/adapters/web/api/routes.py",
        "pizzabot/builtin_skills/expenses/SKILL.md",
        "pizzabot/templates/prompts/root.md.j2",
        "pizzabot/database/migrations/versions/0001_first.py",
        "pizzabot/demo/expenses_server.py",
    ):
        assert path in names
    assert not [name for name in names if name.startswith(("tests/", "adapters/", "skills/"))]


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The `bin` folder of a clean environment with the wheel; it borrows only the dependencies."""
    folder = tmp_path_factory.mktemp("clean")
    run(sys.executable, "-m", "venv", folder / "venv", cwd=folder)
    binaries = folder / "venv" / "bin"
    run(binaries / "python", "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", wheel, cwd=folder)
    (packages,) = (folder / "venv" / "lib").glob("python*/site-packages")
    # Plain paths in a .pth file are searched last; the .pth files of an editable install there stay unread.
    (packages / "borrowed.pth").write_text("\n".join(site.getsitepackages()) + "\n")
    return binaries


def test_the_installed_code_is_that_of_the_wheel(installed: Path, tmp_path: Path) -> None:
    where = run(installed / "python", "-c", "import pizzabot; print(pizzabot.__file__)", cwd=tmp_path)
    assert Path(where.strip()).is_relative_to(installed.parent)


@pytest.fixture
def demo(installed: Path, tmp_path: Path) -> Iterator[Path]:
    """A demo home with its server running from the wheel."""
    home = tmp_path / "home"
    with (tmp_path / "log").open("wb") as log:
        server = subprocess.Popen(
            [installed / "pizzabot", "demo", "--home", home, "--port", "0"],
            cwd=tmp_path,
            stdout=log,
            stderr=log,
        )
    yield home
    server.terminate()
    server.wait(20)


def test_the_demo_runs_from_the_wheel(demo: Path, installed: Path, tmp_path: Path) -> None:
    deadline = time.monotonic() + 60
    while not (demo / ".address").exists() and time.monotonic() < deadline:
        time.sleep(0.1)
    host, port = (demo / ".address").read_text().split()
    with urllib.request.urlopen(f"http://{host}:{port}/healthz", timeout=10) as answer:
        assert json.load(answer)["status"] == "ok"
    asked = "Please file an expense of 42.50 EUR for a taxi to the airport"
    while "ready" not in run(installed / "pizzabot", "--home", demo, "skills", "list", cwd=tmp_path):
        time.sleep(0.2)
    run(installed / "pizzabot", "--home", demo, "ask", asked, cwd=tmp_path)
    actions = json.loads(
        run(installed / "pizzabot", "--home", demo, "inbox", "action", "--json", cwd=tmp_path)
    )
    thread = json.loads(
        run(
            installed / "pizzabot",
            "--home",
            demo,
            "show",
            actions["threads"][0]["id"],
            "--json",
            cwd=tmp_path,
        )
    )
    run(installed / "pizzabot", "--home", demo, "approve", thread["actions"][0]["id"], cwd=tmp_path)
    while "42.50" not in (demo / "expenses.csv").read_text() and time.monotonic() < deadline:
        time.sleep(0.1)
    assert "taxi to the airport" in (demo / "expenses.csv").read_text()
