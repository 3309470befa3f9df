"""What is installed is what was tested and no more: pinned, checked against hashes, used, under known licences."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
import zipfile
from importlib.metadata import PackageNotFoundError, distribution, packages_distributions
from pathlib import Path

import pytest
from packaging.licenses import canonicalize_license_expression
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from hatch_build import requirements
from tools import supply

ROOT = Path(__file__).parent.parent
PINS = supply.pins(supply.CONSTRAINTS.read_text(encoding="utf-8"))
RUNTIME = ("requirements.txt", "requirements-embedded.txt", "requirements-scale.txt")
PRODUCT = ("core", "ui", "pages", "sample_data", "dashboard.py")
REST = ("tests", "bench", "docs", "tools", "hatch_build.py")
IMPORT = re.compile(r"^[ \t]*(?:from ([\w.]+) import ([\w, ]*)|import ([\w.]+))", re.MULTILINE)
# What is used without being imported: where, and the text that needs it.
NOT_IMPORTED = {
    "accelerate": ("core/llm/packaged.py", "gguf_file="),
    "gguf": ("core/llm/packaged.py", "gguf_file="),
    "psycopg": ("core/database.py", "postgresql+psycopg"),
    "authlib": ("ui/people.py", "st.login()"),
    "pytest-timeout": ("pyproject.toml", "\ntimeout = "),
    "pytest-xdist": ("Makefile", "pytest -n 3 --dist"),
    "axe-playwright-python": ("tests/e2e/test_every_page.py", '"axe_playwright_python"'),
    "oidc-provider-mock": ("tests/e2e/test_sign_in.py", '"-m", "oidc_provider_mock"'),
    "ruff": ("Makefile", "$(BIN)/ruff"),
    "mypy": ("Makefile", "$(BIN)/mypy"),
    "zensical": ("Makefile", "$(BIN)/zensical"),
    "pip": ("Makefile", "-m pip"),
    "uv": ("tools/supply.py", '"-m", "uv"'),
}


def required(*files: str) -> set[str]:
    return {canonicalize_name(Requirement(line).name) for file in files for line in requirements(ROOT / file)}


def imported(*places: str) -> set[str]:
    """Every module that is imported there; a name that is imported from one may be a module too."""
    files = [
        file for place in places for file in [*(ROOT / place).rglob("*.py"), ROOT / place] if file.is_file()
    ]
    found = set()
    for file in files:
        # Ten times as fast as parsing each file.
        for module, names, whole in IMPORT.findall(file.read_text(encoding="utf-8")):
            found |= {module or whole, *(f"{module}.{name}" for name in re.findall(r"\w+", names))}
    return found


def modules(package: str) -> set[str]:
    """The modules among the files of an installed package."""
    paths = [path for path in distribution(package).files or [] if path.suffix in {".py", ".so", ".pyd"}]
    return {".".join([*path.parts[:-1], path.name.split(".")[0]]).removesuffix(".__init__") for path in paths}


@pytest.mark.parametrize(
    ("files", "places"), [(RUNTIME, PRODUCT), (("requirements-dev.txt",), REST)], ids=["run", "dev"]
)
def test_every_requirement_is_used(files, places):
    names = imported(*places)
    unused = {package for package in required(*files) - NOT_IMPORTED.keys() if not names & modules(package)}
    assert unused == set()


def test_what_is_used_without_an_import_is():
    for package, (file, text) in NOT_IMPORTED.items():
        assert package in required(*RUNTIME, "requirements-dev.txt")
        assert text in (ROOT / file).read_text(encoding="utf-8"), package


def test_every_import_is_a_requirement_of_its_own():
    owners = packages_distributions()
    tops = {name.split(".")[0] for name in imported(*PRODUCT)}
    foreign = tops - set(sys.stdlib_module_names) - {Path(place).stem for place in PRODUCT}
    assert {"numpy", "markupsafe", "torch"} <= foreign
    direct = required(*RUNTIME)
    hidden = {top for top in foreign if not direct & {canonicalize_name(name) for name in owners[top]}}
    assert hidden == set()


def test_every_requirement_is_pinned_with_hashes():
    listed = required(*RUNTIME, "requirements-dev.txt", "requirements-models.txt", "requirements-peers.txt")
    assert listed <= PINS.keys()
    assert [pin.name for pin in PINS.values() if not pin.hashes] == []
    lines = [line for line in supply.CONSTRAINTS.read_text(encoding="utf-8").splitlines() if "==" in line]
    assert len(lines) == len(PINS)


def test_every_install_is_held_against_them():
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md"), ROOT / "Makefile"]
    lines = [line for page in pages for line in page.read_text(encoding="utf-8").splitlines()]
    installs = [line for line in lines if re.search(r"pip install .*-r requirements", line)]
    assert len(installs) > 4
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8").splitlines()
    # pip itself is checked against its lines of the file, which sed hands on.
    installs += [line for line in makefile if "pip install" in line and "sed -n" not in line]
    assert [line for line in installs if "-c constraints.txt" not in line] == []


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    """A folder with one package, and the hash of its file."""
    folder = tmp_path_factory.mktemp("tiny")
    files = {
        "tiny.py": "",
        "tiny-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: tiny\nVersion: 1.0\n",
        "tiny-1.0.dist-info/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    files["tiny-1.0.dist-info/RECORD"] = "".join(f"{name},,\n" for name in files)
    path = folder / "tiny-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as wheel:
        for name, text in files.items():
            wheel.writestr(name, text)
    return folder, hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.mark.parametrize(
    ("line", "refused"),
    [
        ("tiny==1.0 --hash=sha256:{right}", None),
        ("tiny==1.0 --hash=sha256:{wrong}", "DO NOT MATCH THE HASHES"),
        ("other==1.0 --hash=sha256:{right}", "tiny>=1 from file"),
    ],
)
def test_pip_takes_no_file_without_its_hash(tiny, tmp_path, line, refused):
    folder, right = tiny
    constraints = tmp_path / "constraints.txt"
    constraints.write_text(line.format(right=right, wrong="0" * 64), encoding="utf-8")
    options = ["--no-index", "--find-links", str(folder), "--target", str(tmp_path / "there")]
    done = subprocess.run(
        [sys.executable, "-m", "pip", "install", *options, "tiny>=1", "-c", str(constraints)],
        env=os.environ | {"PIP_CONFIG_FILE": os.devnull}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (tmp_path / "there/tiny.py").exists() == (done.returncode == 0) == (refused is None), done.stderr
    assert refused is None or refused in done.stderr


def test_the_page_and_the_sbom_are_those_of_the_constraints():
    assert supply.PAGE.read_text(encoding="utf-8") == supply.page(PINS), "run make supply"
    assert supply.SBOM.read_text(encoding="utf-8") == supply.sbom(PINS), "run make supply"


def brought(file: str) -> set[str]:
    """What a file of requirements brings to this system, by the metadata of what is installed."""
    seen, open_ = set(), [Requirement(line) for line in requirements(ROOT / file)]
    while open_:
        one = open_.pop()
        key = (canonicalize_name(one.name), frozenset(one.extras))
        if key not in seen:
            seen.add(key)
            below = map(Requirement, distribution(one.name).requires or [])
            extras = one.extras or {""}
            open_ += [
                r for r in below if not r.marker or any(r.marker.evaluate({"extra": e}) for e in extras)
            ]
    return {name for name, _ in seen}


@pytest.mark.parametrize("file", RUNTIME)
def test_what_is_brought_is_what_metadata_say(file):
    here, everywhere = brought(file), supply.brought(PINS, file)
    assert here <= everywhere

    def installed(name: str) -> bool:
        try:
            return bool(distribution(name))
        except PackageNotFoundError:
            return False

    # Installed here for the tests alone, elsewhere required: on Windows.
    assert {name for name in everywhere - here if installed(name)} <= {"colorama", "tzdata"}


def test_licences_are_spdx_and_none_is_given_by_hand_in_vain():
    listed = {pin.name for group in supply.groups(PINS).values() for pin in group}
    assert supply.BY_HAND.keys() <= listed
    for expression in (*supply.BY_HAND.values(), *supply.MEANT.values()):
        assert canonicalize_license_expression(expression) == expression
    assert supply.licence(PINS["idna"]) == "BSD-3-Clause"
    assert supply.licence(PINS["accelerate"]) == "Apache-2.0"
    with pytest.raises(SystemExit, match="nowhere is not installed"):
        supply.licence(supply.Pin("nowhere", "1", (), ()))
    with pytest.raises(SystemExit, match="is installed, not 0"):
        supply.licence(supply.Pin("idna", "0", (), ()))


def test_the_file_of_torch_from_elsewhere_is_of_its_version():
    for name, files in supply.ELSEWHERE.items():
        assert all(f"/{name}-{PINS[name].version}%2B" in address for address in files)
        assert set(files.values()) < set(PINS[name].hashes)
